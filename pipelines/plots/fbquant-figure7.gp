# fbquant-figure7.gp -- the plot of fbquant-figure7.sh
what = "Llama-2-7B with a branch of rank 128, one row of x: tokens per second"
rows = "format way"; panels = "tokens_a_second paper_tokens_a_second"
names = "f16=fp16;uint4=4 bits;uint3=3 bits;plain=;packed=no branch;unfused=unfused branch;fused=fused branch;". \
	"paper_tokens_a_second=the paper, whole model on an RTX 3090\ntokens per second"
load "rows.gp"
