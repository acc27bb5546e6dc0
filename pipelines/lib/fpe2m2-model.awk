# fpe2m2-model.awk -- the row of the unquantized model in FPE2M2's tables
#
#	awk -f fpe2m2-model.awk reference.stats reference.tsv
BEGIN { FS = OFS = "\t" }
FNR == NR { if ($1 != "layer" && $1 != "all") bits = $2 == "f32" ? 32 : 16; next }
{ v[$1] = $2 }
END { print bits, bits, 0, 0, v["nll"], 0, 0, 0, 0, 1, "", "", "" }
