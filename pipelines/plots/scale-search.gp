# scale-search.gp -- the plot of scale-search.sh
what = "Scales of groups: what a search changes, relative to mse"
bars = "one SE over layers (above), over windows (below)"
rows = "search"; series = "compensate"; across = 3
panels = "error_percent@storage=uint4 error_percent@storage=uint3 error_percent@storage=e2m1 ". \
	"kl_delta@storage=uint4 kl_delta@storage=uint3 kl_delta@storage=e2m1"
names = "none=rounded to nearest;both=GPTQ, group-aware order;minmax=range (minmax);hessian=output error (hessian);". \
	"learned=learned range;uint4=4 bits (uint4);uint3=3 bits (uint3);e2m1=4 bits (E2M1)"
load "rows.gp"
