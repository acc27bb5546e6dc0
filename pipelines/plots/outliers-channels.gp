# outliers-channels.gp -- the plot of the channels of outliers.sh
what = "A weight by input channel, before and after a rotation"
H = 420
ways = system("awk -F '\\t' 'NR > 1 && !($1 in seen) { seen[$1]; printf \"%s \", $1 }' ".table)
layer = system("awk -F '\\t' 'NR == 2 { print $2 }' ".table)
about = about.", ".layer
label(w) = w eq "model" ? "original" : w eq "rotated" ? "QuaRot" : "QuaRot+RMS"
of(w) = only('$1 == "'.w.'"')
stats table using (column("absmax")) name "A" nooutput
stats table using (column("channel")) name "C" nooutput
array name[2] = ["largest magnitude", "root mean square"]
@begin
@legend
set multiplot layout 1,words(ways) margins 0.09,0.98,60.0 / H,down(106) spacing 0.03,0; set key off
set yrange [0:1.05 * A_max]; set xrange [0:C_max]; set xtics 100 * int(C_max / 400 + 1)
set xlabel "input channel"; set ylabel "|w|"
do for [w in ways] {
	set title label(w) offset 0,-0.6
	plot of(w) using "channel":"absmax" with impulses lt 1 lw 1, of(w) using "channel":"rms" with lines lt 2 lw 1.5
	@panel
	set ylabel ""; set format y ""
}
unset multiplot
