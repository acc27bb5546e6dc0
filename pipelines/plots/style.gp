# style.gp -- settings of all plots; `plot` (lib/tables.sh) loads it before the script of a plot
#
# `plot` sets: table, the table to draw; part, a folder for unfinished files; out, the plot; about, the model, the
# groups and the number of tokens. A script sets: what, the title; bars, the quantity of the error bars: of a
# table of 5 draws "over windows" is drawn as "over 5 draws and windows", and so "over questions"; and H, the height in
# pixels. Then @begin opens the plot. All plots have the width W. Colours are Okabe and Ito's, each with a point type,
# so that differences stay visible with colour blindness and on a grey print.
set encoding utf8; set datafile separator "\t"; set datafile missing "-"; set datafile columnheaders
env(name) = system("printf %s \"${".name."-}\"")
table = env("table"); part = env("part"); out = env("out"); about = env("about"); bars = ""
W = 800; H = 480
array color[8] = ["#0072b2", "#d55e00", "#009e73", "#e69f00", "#cc79a7", "#56b4e9", "#000000", "#777777"]
array point[8] = [7, 5, 9, 13, 11, 6, 4, 8]
do for [i=1:8] { set linetype i lc rgb color[i] pt point[i] ps 0.6 lw 2 }
set linetype cycle 8
set border 3 lc rgb "#444444"; set tics nomirror; set grid lc rgb "#dddddd" lt 1 lw 1; set errorbars 0.7 lw 2
set key samplen 2 spacing 1.1; set xlabel offset 0,0.3; set ylabel offset 1

# the head of the table, and the rows for which a condition of awk is true
only(condition) = "< awk -F '\\t' 'NR == 1 || (".condition.")' '".table."'"
# a distance from the top in pixels as a screen coordinate
down(pixels) = 1 - real(pixels) / H
begin = 'set terminal svg size W,H noenhanced font "sans-serif,14" background "#ffffff"; set output out; '. \
	'set label 1 what at screen 0.015, screen down(20) left font "sans-serif,16"; '. \
	'B = bars; A = strstrt(B, "over windows"); '. \
	'A = A ? A : strstrt(B, "over questions"); N = int("0".env("draws")); '. \
	'if (A && N > 1) { B = B[1:A + 4].N." draws and ".B[A + 5:*] }; '. \
	'B = about.(strlen(about) && strlen(B) ? "; " : "").(strlen(B) ? "bars: ".B : ""); '. \
	'set label 2 B at screen 0.015, screen down(42) left font "sans-serif,".(strlen(B) > 110 ? 11 : 13) '. \
	'tc rgb "#555555"; set tmargin at screen down(64)'
# the legend of a plot with several panels: name[], with the points of linetypes 1, 2, ...
legend = 'Q = 0; do for [s=1:|name|] { set label 10 + s name[s] at screen (18.0 + Q) / W, screen down(66) left '. \
	'font "sans-serif,13" point lt s ps 0.8 offset 1,-0.2; Q = Q + 7.6 * strlen(name[s]) + 34 }'
# everything that is drawn once, after the first panel
panel = 'unset label; set key off'
