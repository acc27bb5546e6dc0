# mquant-table2.gp -- the plot of mquant-table2.sh
what = "Weights and inputs quantized, static scales of inputs"
base = "MQuant"; panels = "log:kl acc/acc_delta_se paper_textvqa"; paper = "paper: TextVQA, %\nQwen2-VL, GLM-4V"
load "questions.gp"
