# mquant-table6.gp -- the plot of mquant-table6.sh
what = "Weights alone; the last row with int8 inputs"
base = "GPTQ at 4 bits"; panels = "log:kl acc/acc_delta_se paper_textvqa"; paper = "paper: Qwen2-VL-7B\nTextVQA, %"
load "questions.gp"
