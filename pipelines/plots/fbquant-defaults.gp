# fbquant-defaults.gp -- the plot of fbquant-defaults.sh: error on the test set, and its excess over the error on the
# calibration set
what = "FBQuant's error by learning rate and number of steps (3 and 4 bits)"
about = "second block of ".about
H = 640
array name[4] = ["100 steps", "200 steps", "400 steps", "800 steps"]
of(b, i) = only(sprintf('$1 == %d && $2 == %d && $4 == "usual"', b, 50 * 2 ** i))
@begin
@legend
set multiplot layout 2,2 margins 0.11,0.98,0.09,down(116) spacing 0.1,0.12
set logscale x; set xtics (0.0005, "" 0.001, 0.002, "" 0.005, 0.01, 0.03); set xrange [0.0004:0.04]; set key off
do for [r=1:2] { do for [b=3:4] {
	set title (r == 1 ? sprintf("%d bits", b) : "") offset 0,-0.6
	set xlabel (r == 2 ? "learning rate" : "")
	set ylabel (b == 4 ? "" : r == 1 ? "output error on the test set, 10⁻³" : "test set above calibration set, %")
	plot for [i=1:4] of(b, i) using "lr":(r == 1 ? 1000 * column("heldout_error") : \
		100 * (column("heldout_error") / column("calibration_error") - 1)) with linespoints lt i notitle
	@panel
} }
unset multiplot
