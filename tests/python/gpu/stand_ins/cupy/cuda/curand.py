# ruff: noqa: N802, N803
"""NumPy's generators under cuRAND's names; memory is that of the process."""

import ctypes

import numpy as np

CURAND_RNG_PSEUDO_XORWOW = 101
CURAND_RNG_PSEUDO_MRG32K3A = 121
CURAND_RNG_PSEUDO_MTGP32 = 141
CURAND_RNG_PSEUDO_MT19937 = 142
CURAND_RNG_PSEUDO_PHILOX4_32_10 = 161

_made: dict[int, np.random.Generator] = {}


def getVersion():
    return 0


def createGenerator(rng_type):
    assert rng_type in (101, 121, 141, 142, 161)
    _made[len(_made) + 1] = None
    return len(_made)


def destroyGenerator(generator):
    _made[generator] = None


def setPseudoRandomGeneratorSeed(generator, seed):
    _made[generator] = np.random.default_rng(seed)


def generateUniformDouble(generator, outputPtr, num):
    block = np.ctypeslib.as_array((ctypes.c_double * num).from_address(outputPtr))
    block[:] = 1 - _made[generator].random(num)
