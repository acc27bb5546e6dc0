# mquant-table4.gp -- the plot of mquant-table4.sh
what = "Scales of the language model's int8 inputs, 4-bit weights (AWQ: inputs in 16 bits)"
base = "MSQ"; panels = "log:kl acc/acc_delta_se paper_textvqa"; paper = "paper: Qwen2-VL-7B\nTextVQA, %"
load "questions.gp"
