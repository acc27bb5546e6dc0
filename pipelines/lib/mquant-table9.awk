# mquant-table9.awk -- the table of `roofline --table visual` in the units of MQuant table 9, next to its numbers
BEGIN {
	FS = OFS = "\t"
	# visual and language parameters, 10⁹; visual and language operations, 10¹²
	paper["internvl2-8b"] = "0.34\t7.74\t1.28\t7.54"
	paper["qwen-vl-chat"] = "1.94\t7.73\t4.23\t3.70"
	paper["minicpm-v-2.6"] = "0.49\t7.61\t4.16\t3.64"
	paper["qwen2-vl-7b"] = "0.68\t7.61\t1.31\t3.61"
	paper["glm-4v-9b"] = "4.51\t8.78\t12.10\t4.70"
	print "model", "norm", "tokens", "visual_parameters", "language_parameters", "visual_operations", \
		"language_operations", "paper_visual_parameters", "paper_language_parameters", \
		"paper_visual_operations", "paper_language_operations"
}
NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
{
	print $c["model"], $c["norm"], $c["tokens"], $c["visual_parameters"] / 1e9, \
		$c["language_parameters"] / 1e9, $c["visual_operations"] / 1e12, \
		$c["language_operations"] / $c["tokens"] * 256 / 1e12, paper[$c["model"]]
}
