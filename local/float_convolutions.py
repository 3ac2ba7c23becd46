"""Convolutions of 8-bit integers in an ONNX network, computed in floating point.

ONNX Runtime takes twice as long for the operator ConvInteger as for Conv on processors without AVX-512 VNNI. The sums
are those of integers below 2^24 and so the same. What is changed is a few nodes; the file is read and written by the
wire format of Protocol Buffers, without the package onnx.
"""
GRAPH = 7                                            # field of ModelProto, as onnx.proto numbers them
NODE, VALUE_INFO = 1, 13                             # of GraphProto
INPUT, OUTPUT, NAME, OP_TYPE, ATTRIBUTE = range(1, 6)     # of NodeProto
ATTRIBUTE_NAME, ATTRIBUTE_INT, ATTRIBUTE_TYPE, TYPE_INT = 1, 3, 20, 2
FLOAT, INT32 = 1, 6                                  # of TensorProto.DataType


def float_convolutions(network):
    """An ONNX network (bytes) with every ConvInteger made a Conv on floats between casts: bytes.

    For zero points of whole tensors. IndexError or KeyError where it is no such file.
    """
    made = []
    for number, value, raw in _fields(memoryview(network)):
        made.append(_message(GRAPH, b"".join(_graph(value))) if number == GRAPH else raw)
    return b"".join(made)


def _graph(data):
    """Fields of the graph; the types of values in between are left out, which ONNX Runtime finds itself."""
    for number, value, raw in _fields(data):
        if number == NODE and any(bytes(part) == b"ConvInteger" for each, part, _ in _fields(value) if each == OP_TYPE):
            yield from _nodes(value)
        elif number != VALUE_INFO:
            yield raw


def _nodes(convolution):
    """The nodes that take the place of one ConvInteger, whose inputs are x, w and, or not, their zero points."""
    found = {INPUT: [], OUTPUT: [], ATTRIBUTE: []}
    for number, value, raw in _fields(convolution):
        found.setdefault(number, []).append(bytes(raw if number == ATTRIBUTE else value))
    output = found[OUTPUT][0]
    tensors, zeros = found[INPUT][:2], (found[INPUT][2:] + [b"", b""])[:2]
    differences = []
    for index, (tensor, zero) in enumerate(zip(tensors, zeros)):
        name = output + b"_float_%d" % index
        yield _cast(tensor, name, FLOAT)
        if zero:
            yield _cast(zero, name + b"_zero", FLOAT)
            yield _node(b"Sub", [name, name + b"_zero"], name + b"_difference")
            name += b"_difference"
        differences.append(name)
    yield _node(b"Conv", differences, output + b"_float", b"".join(found[ATTRIBUTE]))
    yield _cast(output + b"_float", output, INT32)


def _cast(source, target, kind):
    attribute = (_message(ATTRIBUTE_NAME, b"to") + _varint(ATTRIBUTE_INT << 3) + _varint(kind) +
                 _varint(ATTRIBUTE_TYPE << 3) + _varint(TYPE_INT))
    return _node(b"Cast", [source], target, _message(ATTRIBUTE, attribute))


def _node(operator, inputs, output, attributes=b""):
    return _message(NODE, b"".join(_message(INPUT, name) for name in inputs) + _message(OUTPUT, output) +
                    _message(NAME, output + b"_node") + _message(OP_TYPE, operator) + attributes)


def _message(number, data):
    """A field that has a length."""
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value):
    data = b""
    while value > 127:
        data, value = data + bytes([value & 127 | 128]), value >> 7
    return data + bytes([value])


def _fields(data):
    """Of a message (memoryview): iterator of (field number, value, the whole field)."""
    place = 0

    def read():
        nonlocal place
        value = shift = 0
        while True:
            byte = data[place]
            place, value, shift = place + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    while place < len(data):
        start, key = place, read()
        if key & 7 == 0:
            value = read()
        else:
            size = {1: lambda: 8, 2: read, 5: lambda: 4}[key & 7]()
            value, place = data[place:place + size], place + size
        yield key >> 3, value, data[start:place]
