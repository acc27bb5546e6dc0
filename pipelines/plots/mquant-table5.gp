# mquant-table5.gp -- the plot of mquant-table5.sh
what = "W4A8 in encoder, projector and language model: what each part adds"
base = "MQuant"; panels = "log:kl acc/acc_delta_se paper_textvqa"; paper = "paper: Qwen2-VL-7B\nTextVQA, %"
load "questions.gp"
