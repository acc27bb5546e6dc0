# input-error.gp -- the plot of input-error.sh
what = "GPTQ, and compensation for the error of inputs by QEP and Qronos"
bars = "one standard error over windows"
rows = "storage group calibration"; series = "method"; panels = "log:kl"
names = "gptq=GPTQ;qep=QEP;qronos=Qronos"
load "rows.gp"
