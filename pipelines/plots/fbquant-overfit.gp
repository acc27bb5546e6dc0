# fbquant-overfit.gp -- the plot of fbquant-overfit.sh
what = "Branches with weights of 3 bits, fitted to few tokens"
bars = "one standard error over windows"
array name[4] = ["SVD", "EoRA", "CALDERA", "FBQuant"]
of(i) = only(sprintf('$2 == "%s"', word("lowrank eora caldera fbquant", i)))
stats table using (1000 * column("calibration_error")) name "A" nooutput
stats table using (1000 * column("heldout_error")) name "B" nooutput
@begin
@legend
set multiplot layout 1,3 margins 0.08,0.98,0.14,down(114) spacing 0.07,0; set key off
set logscale x 2; set xrange [200:21000]
set yrange [0:1.1 * (A_max > B_max ? A_max : B_max)]; set xlabel "tokens of calibration"
set xtics (256, 1024, 4096, 16384)
do for [c in "calibration_error heldout_error"] {
	set title (c eq "heldout_error" ? "on the test set" : "on the tokens of calibration") offset 0,-0.6
	set ylabel (c eq "heldout_error" ? "" : "output error, 10⁻³")
	plot for [i=1:4] of(i) using "tokens":(1000 * column(c)) with linespoints lt i
	@panel
}
set title "KL, 10⁻³ nats per token" offset 0,-0.6; set yrange [0:*]
plot for [i=1:4] of(i) using "tokens":(1000 * column("kl")):(1000 * column("kl_se")) with yerrorlines lt i
unset multiplot
