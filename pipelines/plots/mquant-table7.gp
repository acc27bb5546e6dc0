# mquant-table7.gp -- the plot of mquant-table7.sh
what = "Linear layers of Qwen2-VL-7B by the scales of their inputs"
rows = "what"; panels = "times_16_bit+paper_times@stage=prefill times_16_bit+paper_times@stage=decode"
names = "times_16_bit=here, one block on a CPU;paper_times=the paper, RTX 6000 Ada;". \
	"prefill=prefill, 4096 visual and 64 text tokens;decode=decoding, one row;f16=f16;bf16=bf16;". \
	"w4-packed=4-bit weights, packed;w4a8-token=W4A8, scale per token;w4a8-tensor=W4A8, scale per tensor;". \
	"w4a8-msq=W4A8, scale per modality;w4a8-msq-aifs=W4A8, visual tokens first;". \
	"w4a8-token-packed=W4A8, per token, packed;w4a8-msq-packed=W4A8, per modality, packed"
load "rows.gp"
