# mquant-table9.gp -- the plot of mquant-table9.sh: visual tokens by the size of an image
what = "Visual tokens of a square image"
about = "computed from the configurations of the models"
models = system("awk -F '\\t' 'NR > 1 && !($1 in seen) { seen[$1]; printf \"%s \", $1 }' ".table)
of(m) = only('$1 == "'.m.'"')
set logscale y 2; set yrange [48:8192]; set ytics (64, 128, 256, 512, 1024, 2048, 4096)
set xlabel "side of the image, pixels"; set ylabel "visual tokens"; set key outside right top
@begin
plot for [i=1:words(models)] of(word(models, i)) using "image":"tokens" with linespoints lt i title word(models, i)
