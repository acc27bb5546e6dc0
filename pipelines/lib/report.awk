# report.awk -- a number of a tool's --report, with the digits of the tool's table
function shown(x) { return x == "" ? "" : sprintf("%.6g", x) }
