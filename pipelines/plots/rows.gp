# rows.gp -- a table as rows of points in panels side by side, with error bars
#
# A script sets what, bars, and rows, series, panels and names as for rows.awk; across: panels in a line (all);
# note: the text below the labels of the rows.
across = exists("across") ? across : 9; series = exists("series") ? series : ""
names = exists("names") ? names : ""; paper = exists("paper") ? paper : ""; note = exists("note") ? note : ""
quote(s) = "'".s."'"
load "< awk -v rows=".quote(rows)." -v series=".quote(series)." -v panels=".quote(panels)." -v names=". \
	quote(names)." -v paper=".quote(paper)." -f \"$plots/rows.awk\" ".quote(table)
across = across < P ? across : P; lines = (P + across - 1) / across
captions = 0; do for [p=1:P] { captions = captions || strlen(caption[p]) }
top = 66.0 + (S > 1 ? 22 : 0) + (captions ? 20 : 0)
tall = R * (S < 2 ? 24.0 : 8 + 12 * S); foot = 86.0
H = int(top + lines * (tall + foot) + (lines - 1) * (captions ? 20 : 0))
left = 28.0 + 9.4 * widest; gap = 26.0; wide = (W - left - 18 - gap * (across - 1)) / across
y(r, s) = -r - (s - 0.5 * (S + 1)) * (S < 2 ? 0 : 12.0 / (8 + 12 * S))
@begin
if (S > 1) { @legend }
set label 3 note at screen 0.015, screen down(H - 50) left font "sans-serif,12" tc rgb "#555555"
set multiplot; set border 1; set key off; set ytics scale 0; set yrange [-R - 0.6:-0.4]
do for [p=1:P] {
	i = (p - 1) % across; j = (p - 1) / across; above = top + j * (tall + foot + (captions ? 20 : 0))
	side = left + i * (wide + gap); set lmargin at screen side / W; set rmargin at screen (side + wide) / W
	set tmargin at screen down(above); set bmargin at screen down(above + tall)
	if (i) { eval blanks } else { eval labels }
	eval ticks[p]
	if (islog[p]) { set logscale x } else { unset logscale x }
	set xrange [from[p]:to[p]]; set xlabel axis[p] font "sans-serif,13"; set title caption[p] offset 0,-0.6
	unset arrow 1; if (!islog[p] && from[p] < 0 && to[p] > 0) {
		set arrow 1 from 0, graph 0 to 0, graph 1 nohead lc rgb "#444444" lw 1
	}
	plot for [s=1:S] $points using ($1 == p && $3 == s && $6 > $5 ? $4 : NaN):(y($2, s)):5:6 \
		with xerrorbars lt s notitle, \
		for [s=1:S] "" using ($1 == p && $3 == s ? $4 : NaN):(y($2, s)) with points lt s ps 0.7 notitle
	@panel
}
unset multiplot
