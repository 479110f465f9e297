//go:build !purego

#include "textflag.h"

// func dot(c, x []float32) float32
//
// SSE only, which every amd64 processor has. The lanes are the partial sums of
// dotGo, added in the same order: the results are equal bit by bit.
TEXT ·dot(SB), NOSPLIT, $0-52
	MOVQ c_base+0(FP), SI
	MOVQ c_len+8(FP), CX
	MOVQ x_base+24(FP), DI
	XORPS X0, X0
	XORPS X1, X1
	SHRQ $3, CX
	JZ   done

loop:
	MOVUPS 0(SI), X2
	MOVUPS 16(SI), X3
	MOVUPS 0(DI), X4
	MOVUPS 16(DI), X5
	MULPS  X4, X2
	MULPS  X5, X3
	ADDPS  X2, X0
	ADDPS  X3, X1
	ADDQ   $32, SI
	ADDQ   $32, DI
	DECQ   CX
	JNZ    loop

done:
	ADDPS   X1, X0
	MOVHLPS X0, X1
	ADDPS   X1, X0
	MOVAPS  X0, X1
	SHUFPS  $1, X1, X1
	ADDSS   X1, X0
	MOVSS   X0, ret+48(FP)
	RET
