# sequential.awk -- medians of the times that sequential.sh measures
#
#	awk -f sequential.awk seconds-SCHEME-WAY-RUN.txt...
#
# A file has the seconds of one run: elapsed time, processor time of the program, processor time of the system. ratio:
# of the two times of one run.
BEGIN {
	OFS = "\t"
	print "scheme", "one_shot", "sequential", "ratio", "ratio_of_processor_time"
}
{
	split(FILENAME, part, /[-.]/)
	way = part[3] == "one" ? "one" : "sequential"
	run = part[length(part) - 1]
	elapsed[part[2], way, run] = $1
	processor[part[2], way, run] = $2 + $3
	if (run > runs) runs = run
}
function median(x,  i, j, v) {	# of x[1 .. runs], which it sorts
	for (i = 2; i <= runs; i++)
		for (j = i; j > 1 && x[j] < x[j - 1]; j--) { v = x[j]; x[j] = x[j - 1]; x[j - 1] = v }
	return sprintf("%.3g", (x[int((runs + 1) / 2)] + x[int(runs / 2) + 1]) / 2)
}
END {
	runs += 0
	for (s = split("W4A16 W4A8", scheme, " "); s >= 1; s--) {
		for (r = 1; r <= runs; r++) {
			one[r] = elapsed[scheme[s], "one", r]
			two[r] = elapsed[scheme[s], "sequential", r]
			ratio[r] = two[r] / one[r]
			both[r] = processor[scheme[s], "sequential", r] / processor[scheme[s], "one", r]
		}
		line[s] = scheme[s] OFS median(one) OFS median(two) OFS median(ratio) OFS median(both)
	}
	print line[1] "\n" line[2]
}
