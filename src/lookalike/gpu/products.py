"""The two lines of assembly that name each of a warpgroup's registers: C++ cannot count them."""

from __future__ import annotations


def products(columns: int) -> str:
    """Return C++ for products of 64 rows of queries with so many columns: `multiply` and `wait`."""
    count = columns // 2
    sums = ", ".join(f"%{number}" for number in range(count))
    rows = ", ".join(f"%{count + number}" for number in range(4))
    outputs = ", ".join(f'"+r"(d[{number}])' for number in range(count))
    return f"""
__device__ __forceinline__ void multiply(int (&d)[{count}], const u32 (&a)[4], u64 b, u32 more) {{
    asm volatile(
        "{{\\n.reg .pred add;\\nsetp.ne.b32 add, %{count + 5}, 0;\\n"
        "wgmma.mma_async.sync.aligned.m64n{columns}k256.s32.b1.b1.and.popc "
        "{{{sums}}}, {{{rows}}}, %{count + 4}, add;\\n}}"
        : {outputs}
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(more));
}}

// With the registers as operands, so that nothing that reads them comes before.
template <int N>
__device__ __forceinline__ void wait(int (&d)[{count}]) {{
    asm volatile("wgmma.wait_group.sync.aligned %{count};" : {outputs} : "n"(N) : "memory");
}}
"""
