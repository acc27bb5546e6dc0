# mquant-table1.gp -- the plot of mquant-table1.sh
what = "int8 inputs, static scales by modality: one modality clipped at a percentile"
base = "no clipping"; panels = "log:kl acc/acc_delta_se paper_textvqa"; paper = "paper: Qwen-VL\nTextVQA, %"
load "questions.gp"
