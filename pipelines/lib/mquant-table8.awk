# mquant-table8.awk -- the rotations of MQuant's table 8, and the mean change by suppression with its error over
# rotations
BEGIN { FS = OFS = "\t" }
{ print }
$1 == "RMS" { n++; nll += $9; nll2 += $9 * $9; kl += $11; kl2 += $11 * $11 }
function se(sum, squares) { return n > 1 ? sqrt((squares / n - sum * sum / n / n) / (n - 1)) : 0 }
END { print "RMS", "all", "", "", "", "", "", "", nll / n, se(nll, nll2), kl / n, se(kl, kl2), "", "", "" }
