# report.awk -- a number of a tool's --report, with the digits that the tool's own table has
function shown(x) { return x == "" ? "" : sprintf("%.6g", x) }
