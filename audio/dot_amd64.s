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

// func samplesAVX(f *four)
//
// Each sum has the lanes of dotGo's, added in the same order.
TEXT ·samplesAVX(SB), NOSPLIT, $0-8
	MOVQ f+0(FP), AX
	MOVQ 8(AX), CX    // len(c[0])
	MOVQ 0(AX), R8      // c[0]
	MOVQ 24(AX), R9     // c[1]
	MOVQ 48(AX), R10    // c[2]
	MOVQ 72(AX), R11    // c[3]
	MOVQ 96(AX), SI     // x[0]
	MOVQ 120(AX), DI    // x[1]
	MOVQ 144(AX), BX    // x[2]
	MOVQ 168(AX), DX    // x[3]
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	SHLQ $2, CX       // in bytes
	XORQ R12, R12
	JMP  check

next:
	VMOVUPS (R12)(R8*1), Y4
	VMOVUPS (R12)(R9*1), Y5
	VMOVUPS (R12)(R10*1), Y6
	VMOVUPS (R12)(R11*1), Y7
	VMULPS  (R12)(SI*1), Y4, Y4
	VMULPS  (R12)(DI*1), Y5, Y5
	VMULPS  (R12)(BX*1), Y6, Y6
	VMULPS  (R12)(DX*1), Y7, Y7
	VADDPS  Y4, Y0, Y0
	VADDPS  Y5, Y1, Y1
	VADDPS  Y6, Y2, Y2
	VADDPS  Y7, Y3, Y3
	ADDQ    $32, R12

check:
	CMPQ R12, CX
	JB   next

	// Lane i and lane i+4.
	VEXTRACTF128 $1, Y0, X4
	VEXTRACTF128 $1, Y1, X5
	VEXTRACTF128 $1, Y2, X6
	VEXTRACTF128 $1, Y3, X7
	VADDPS       X4, X0, X0
	VADDPS       X5, X1, X1
	VADDPS       X6, X2, X2
	VADDPS       X7, X3, X3

	// Lanes 0 and 2, 1 and 3, of two sums each.
	VUNPCKLPS X1, X0, X4
	VUNPCKHPS X1, X0, X5
	VADDPS    X5, X4, X4
	VUNPCKLPS X3, X2, X6
	VUNPCKHPS X3, X2, X7
	VADDPS    X7, X6, X6

	// Those two, of all four.
	VMOVLHPS X6, X4, X0
	VMOVHLPS X4, X6, X1
	VADDPS   X1, X0, X0

	// To the nearest sample, and to full scale (MXCSR rounds to even).
	VCVTPS2DQ  X0, X0
	VPACKSSDW  X0, X0, X0
	VMOVQ      X0, 192(AX) // out
	VZEROUPPER
	RET
