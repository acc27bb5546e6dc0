# dpq-table1.gp -- the plot of dpq-table1.sh
what = "4-bit weights of the language model, by GPTQ and DPQ"
base = "DPQ"; panels = "log:kl acc/acc_delta_se paper_mean"; paper = "paper: Qwen2-VL-7B\nmean of 3 sets, %"
load "questions.gp"
