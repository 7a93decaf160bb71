"""Tell if every request of a prefill batch is new, from lengths that are on the CPU."""

from itertools import pairwise


def all_new(metadata):
    """Return True if no request of this batch has tokens in the cache: each query is as long as its sequence.

    Lengths of prefill rows on the CPU are exact; without them the GPU is asked, as vLLM's own loop does.
    """
    from sndr_overlay.hits import count

    count("turboquant-mixed-prefill-prefix")
    starts = metadata.query_start_loc_cpu
    lengths = metadata.seq_lens_cpu
    starts = (metadata.query_start_loc if starts is None else starts).tolist()
    lengths = (metadata.seq_lens if lengths is None else lengths).tolist()
    queries = [end - start for start, end in pairwise(starts)]
    return all(query in {0, length} for query, length in zip(queries, lengths, strict=False))
