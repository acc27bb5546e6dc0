# smoothquant.gp -- the plot of smoothquant.sh: KL in per cent of the paired KL at α = 0.5
system("awk -F '\\t' -v OFS='\\t' 'NR == FNR { if ($2 == \"0.5\") kl[$1] = $3; next } ". \
	"FNR == 1 { print $1, $2, \"kl_percent\", \"kl_percent_se\"; next } ". \
	"{ print $1, $2, 100 * $5 / kl[$1], 100 * $6 / kl[$1] }' '".table."' '".table."' >'".part."/percent.tsv'")
table = part."/percent.tsv"
what = "8-bit weights under rounded activations: what SmoothQuant's α changes from α = 0.5"
bars = "one standard error over windows"
rows = "alpha"; series = "activations"; panels = "kl_percent"
names = "none=not smoothed;0.25=α = 0.25;0.75=α = 0.75;0.9=α = 0.9;A8-token=int8, scale per token;". \
	"A8-static=int8, static scale;A8-99.99=int8, static, clipped;A4-token=int4, scale per token"
load "rows.gp"
