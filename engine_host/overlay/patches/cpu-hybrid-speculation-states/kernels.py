"""The two kernels that move recurrent and convolution states between blocks, for a vLLM without Triton.

The arguments are those of vLLM's launches. A state's place is a column of the request's block table: one
column for each block of tokens, and behind the running one a column for the state after each drafted token.
"""

import ctypes


def after_step(accepted, columns, scheduled, computed, drafted, *rest, block_size, **constants):
    """Keep the state at the last block boundary that the accepted tokens reached.

    A boundary that only rejected tokens passed gets nothing: its state is after tokens that are not there.
    """
    from sndr_overlay.hits import count

    *layout, accepted_out, rows, requests = rest
    count("cpu-hybrid-speculation-states")
    states = _States(*layout, constants)
    for request in _requests(rows, requests, constants.get("HAS_IDX_MAPPING", False)):
        taken, source = int(accepted[request]), int(columns[request])
        first = int(computed[request])
        if constants.get("PRECOMPUTED_NEW_COMPUTED", False):
            first -= taken - 1
        else:
            first += int(scheduled[request]) - int(drafted[request])
        boundary = (first + taken - 1) // block_size * block_size
        if boundary < first:
            continue
        target = boundary // block_size - 1
        if source == target:
            accepted_out[request] = 1
        if source != target or boundary != first:
            states.copy(request, source, target, boundary - first)


def before_step(columns, sources, skipped, *rest, **constants):
    """Bring each request's state into the block that the coming step writes."""
    *layout, rows, requests = rest
    states = _States(*layout, constants)
    for request in _requests(rows, requests, constants.get("HAS_IDX_MAPPING", True)):
        source, target = int(sources[request]), int(columns[request])
        if source >= 0 and source != target:
            states.copy(request, source, target, int(skipped[request]))


def _requests(rows, requests, mapped):
    numbers = [int(rows[row]) for row in range(requests)] if mapped else range(requests)
    return [number for number in numbers if number >= 0]


class _States:
    """The addresses of every layer's states, and the tables that say which block is a request's."""

    def __init__(
        self, tables, row, bases, strides, elements, inner, widths, groups, _rows, _row_strides, constants
    ):
        if constants["CONV_STATE_DIM_FIRST"]:
            raise NotImplementedError("convolution states with the dimension first")
        self._tables, self._row = tables.tolist(), row
        columns = (bases, strides, elements, inner, widths, groups)
        self._layers = list(zip(*(column.tolist() for column in columns), strict=True))

    def copy(self, request, source, target, skipped):
        """Copy the state that is `skipped` tokens behind the source's first one, in each layer."""
        for base, stride, element, inner, width, group in self._layers:
            table = self._tables[group] + request * self._row * 4
            to = base + _block(table, target) * stride
            token = inner * element
            if width:
                # A convolution's window slides over one row of inputs, which holds the drafted ones too.
                start = base + _block(table, source) * stride + skipped * token
                ctypes.memmove(to, start, (width - skipped) * token)
            else:
                ctypes.memmove(to, base + _block(table, source + skipped) * stride, token)


def _block(table, column):
    return ctypes.c_int32.from_address(table + column * 4).value
