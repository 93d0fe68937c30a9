"""Ranks as SMs of a GPU: the same schedules, walked by one persistent kernel.

stream.py    the instruction stream of a schedule, and where its memory lies
walk.py      the CPU reference of the kernel that walks it
job.py       what a launch is given
compiler.py  kernels to machine code, by NVRTC
"""
