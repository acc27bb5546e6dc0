# numbers.awk -- numbers for readers: an error has two digits, its value as many decimals, other numbers four digits

function is_number(s) { return s ~ /^[-+]?[0-9]*\.?[0-9]+(e[-+]?[0-9]+)?$/ }
function whole(s) { return s ~ /^[-+]?[0-9]+$/ }
function floor(x) { return x < int(x) ? int(x) - 1 : int(x) }
function rounded(x) { return is_number(x) && !whole(x) ? sprintf("%.4g", x) : x }
function with_error(x, se,   decimals) {
	if (!is_number(x) || !is_number(se) || se + 0 <= 0)
		return rounded(x)
	decimals = 1 - floor(log(se) / log(10) + 1e-9)
	if (decimals < 0)
		decimals = 0
	return sprintf("%.*f ± %.*f", decimals, x, decimals, se)
}
