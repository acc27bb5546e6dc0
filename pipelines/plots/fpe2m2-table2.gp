# fpe2m2-table2.gp -- the plot of fpe2m2-table2.sh
what = "4 and 5 bits with one scale per row, rounded to nearest"
base = "E2M2"; panels = "log:kl acc/acc_delta_se paper_mean"; paper = "paper: Qwen2-VL-7B\nmean of 5 sets, %"
load "questions.gp"
