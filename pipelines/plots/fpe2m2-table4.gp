# fpe2m2-table4.gp -- the plot of fpe2m2-table4.sh
what = "Groups and GPTQ for integers and floats of 4 and 5 bits"
bars = "one standard error over windows"
rows = "format scales"; panels = "log:kl nll_rise paper"
paper = "paper: Qwen2.5-7B\nmean accuracy, %"
names = "int4=INT4;e2m1=E2M1;int5=INT5;e2m2=E2M2;channel=scale per row;group=groups;gptq=scale per row, GPTQ"
load "rows.gp"
