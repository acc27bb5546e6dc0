#!/bin/sh
# gar-order.t -- column orders of gar-order; bad input
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"

py make
order() { py order "$1" "${2:-layer/order}"; }

gar-order --group 2 figure1.h5 -o o.h5;                 is 'DPQ figure 1' "$(order o.h5)" '6 5 2 1 3 4'
gar-order --group 2 < figure1.h5 > p.h5;                ok 'the same by redirection' cmp o.h5 p.h5
gar-order --group 2 < figure1.h5 | cat > s.h5
is '... and as a stream in a file' "$(h5ls s.h5 | head -1)" 'layer                    Group'
gar-order --order full figure1.h5 -o o.h5;              is 'full: by descending element' "$(order o.h5)" '6 5 2 1 3 4'
gar-order --order none figure1.h5 -o o.h5;              is 'none: storage order' "$(order o.h5)" '1 2 3 4 5 6'
gar-order --order full ties.h5 -o o.h5;                 is 'ties keep their order' "$(order o.h5)" '4 5 1 2 3 6 7'
gar-order --group 3 tail.h5 -o o.h5
is 'a short last group is ranked like the others' "$(order o.h5)" '7 6 5 4 3 2 1'
gar-order --group 3 --key sum tail.h5 -o o.h5;          is 'key sum' "$(order o.h5)" '6 5 4 7 3 2 1'
gar-order --group 3 --key mean tail.h5 -o o.h5;         is 'key mean' "$(order o.h5)" '7 6 5 4 3 2 1'
gar-order --group 100 figure1.h5 -o o.h5;               is 'a group larger than the layer' "$(order o.h5)" '6 5 2 1 3 4'
gar-order --group 2 shared.h5 -o o.h5
is 'shared Hessians share the order' "$(h5ls -r o.h5 | grep -c -i 'same as')" 1
is 'order, key and group are root attributes' "$(py attributes)" 'gar max 2'
no 'a diagonal that is not a number' 1 'nan.h5: /layer/hessian: diagonal element 1 is nan' gar-order nan.h5 -o x.h5
no 'a negative diagonal' 1 'diagonal element 1 is -1' gar-order negative.h5 -o x.h5
no 'a Hessian that is not square' 1 'has 3 rows and 4 columns' gar-order flat.h5 -o x.h5
no 'a file of another kind' 1 "o.h5: holds an 'order', expected 'hessian'" gar-order o.h5 -o x.h5
no 'no layer selected' 1 'holds no layer that --layers selects' gar-order --layers nothing figure1.h5 -o x.h5
no 'an unknown key' 2 "'best' is not one of max, mean, sum, median, top10" gar-order --key best figure1.h5 -o x.h5
no 'group 0' 2 'neither a number of columns' gar-order --group 0 figure1.h5 -o x.h5
ok 'no result was written' test ! -e x.h5
done_testing
