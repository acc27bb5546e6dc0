# shellcheck shell=bash disable=SC2034,SC2154
# packages.sh -- models quantized by llm-compressor and GPTQModel, by peers.py
#
#   find_packages          sets $missing to the first module that the Python PEERS lacks for llm-compressor, '' if
#                          none, and $missing_gptq to the one that GPTQMODEL (default: PEERS) lacks for GPTQModel
#   packaged NAME PACKAGE METHOD CODE LIMIT [OPTION [SCALES]]   NAME.h5: model.h5 quantized by llmcompressor or
#                          gptqmodel, on the first LIMIT tokens (0: all) of calib.h5, in groups of $group; METHOD, CODE
#                          and SCALES as peers.py has them; OPTION: of model-import. NAME.tar: the checkpoint,
#                          NAME.usage: messages, memory, time
find_packages() {
	PEERS=$(type -P "${PEERS:=python3}" || echo "$PEERS")
	GPTQMODEL=$(type -P "${GPTQMODEL:=$PEERS}" || echo "$GPTQMODEL")
	export PEERS GPTQMODEL
	missing=$(lacks PEERS torch transformers h5py compressed_tensors llmcompressor)
	missing_gptq=$(lacks GPTQMODEL torch transformers h5py optimum gptqmodel)
	[ -n "$missing" ] && [ -n "$missing_gptq" ] || link peers.py "$lib/peers.py"
}
lacks() {	# lacks VARIABLE MODULE...: the first module that the Python in this variable lacks
	local m
	for m in "${@:2}"; do
		"${!1}" -c "import importlib.util as u; u.find_spec('$m') or exit(1)" 2>/dev/null || {
			[ $mode != make ] || say "no $m in ${!1}, no rows of ${*: -1}: set $1 to a Python with it"
			echo "$m"
			return
		}
	done
}
packaged() {
	local python=PEERS
	[ "$2" != gptqmodel ] || python=GPTQMODEL
	step 'model-export -q -o plain model.h5 && tar -cf - plain >plain.tar && rm -r plain'
	step "\"\$$python\" -B peers.py $2 $3 $4 $group plain.tar calib.h5 ${PTQ_CTX:-256} $5${7:+ $7} >$1.tar" \
		"2>$1.usage"
	step "mkdir -p $1 && tar -C $1 -xf $1.tar && model-import -q${6:+ $6} $1 -o $1.h5 && rm -r $1"
}
