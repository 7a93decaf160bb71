"""The CPU's own forms of vLLM's kernels for the states of hybrids."""


def kernels():
    """Return the implementations by the kernel that each stands for; none where Triton is there."""
    from vllm.triton_utils import HAS_TRITON

    if HAS_TRITON:
        return {}
    from sndr_overlay_patches.cpu_hybrid_speculation_states.kernels import after_step, before_step

    return {
        "vllm.v1.worker.mamba_utils.postprocess_mamba_fused_kernel": after_step,
        "vllm.v1.worker.mamba_utils.precopy_mamba_align_fused_kernel": before_step,
    }
