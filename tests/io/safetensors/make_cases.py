"""Writes cases.tsv: headers, and whether safetensors 0.8 accepts them (pip install safetensors numpy). Each line has
the name of a case, ok or refused, and the file in hexadecimal digits."""
import struct, json, os, tempfile
from safetensors import safe_open
import safetensors
d = bytes(range(16))
def f(h, data=d, n=None):
    h = h if isinstance(h, bytes) else h.encode()
    return struct.pack('<Q', len(h) if n is None else n) + h + data
E='"dtype":"F32","shape":[2,2],"data_offsets":[0,16]'
cases = {
 'plain': f('{"a":{%s}}'%E),
 'unknown key': f('{"a":{%s,"foo":1}}'%E),
 'unknown key nested': f('{"a":{%s,"foo":{"x":[1,{}]}}}'%E),
 'unknown key first': f('{"a":{"foo":null,%s}}'%E),
 'order': f('{"a":{"data_offsets":[0,16],"shape":[2,2],"dtype":"F32"}}'),
 'dup dtype': f('{"a":{%s,"dtype":"F32"}}'%E),
 'dup shape': f('{"a":{%s,"shape":[2,2]}}'%E),
 'dup unknown': f('{"a":{%s,"z":1,"z":2}}'%E),
 'dup name': f('{"a":{%s},"a":{%s}}'%(E,E)),
 'dup name differs': f('{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{%s}}'%E),
 'dup metadata': f('{"__metadata__":{"a":"b"},"__metadata__":{"c":"d"},"a":{%s}}'%E),
 'meta null': f('{"__metadata__":null,"a":{%s}}'%E),
 'meta empty': f('{"__metadata__":{},"a":{%s}}'%E),
 'meta text': f('{"__metadata__":{"k":"v"},"a":{%s}}'%E),
 'meta value null': f('{"__metadata__":{"k":null},"a":{%s}}'%E),
 'meta value number': f('{"__metadata__":{"k":1},"a":{%s}}'%E),
 'meta list': f('{"__metadata__":[],"a":{%s}}'%E),
 'meta string': f('{"__metadata__":"x","a":{%s}}'%E),
 'meta dup keys': f('{"__metadata__":{"k":"v","k":"w"},"a":{%s}}'%E),
 'meta last': f('{"a":{%s},"__metadata__":{"k":"v"}}'%E),
 'struct as list': f('{"a":["F32",[2,2],[0,16]]}'),
 'struct as list extra': f('{"a":["F32",[2,2],[0,16],1]}'),
 'struct as list short': f('{"a":["F32",[2,2]]}'),
 'entry null': f('{"a":null}'),
 'entry number': f('{"a":5}'),
 'dtype lower': f('{"a":{"dtype":"f32","shape":[2,2],"data_offsets":[0,16]}}'),
 'dtype map': f('{"a":{"dtype":{"F32":null},"shape":[2,2],"data_offsets":[0,16]}}'),
 'dtype null': f('{"a":{"dtype":null,"shape":[2,2],"data_offsets":[0,16]}}'),
 'dtype number': f('{"a":{"dtype":1,"shape":[2,2],"data_offsets":[0,16]}}'),
 'dtype unknown': f('{"a":{"dtype":"F33","shape":[2,2],"data_offsets":[0,16]}}'),
 'shape float': f('{"a":{"dtype":"F32","shape":[2.0,2],"data_offsets":[0,16]}}'),
 'shape exp': f('{"a":{"dtype":"F32","shape":[2e0,2],"data_offsets":[0,16]}}'),
 'shape neg': f('{"a":{"dtype":"F32","shape":[-2,2],"data_offsets":[0,16]}}'),
 'shape neg zero': f('{"a":{"dtype":"F32","shape":[-0,2],"data_offsets":[0,0]}}', b''),
 'shape text': f('{"a":{"dtype":"F32","shape":["2",2],"data_offsets":[0,16]}}'),
 'shape null': f('{"a":{"dtype":"F32","shape":null,"data_offsets":[0,16]}}'),
 'shape u64 max': f('{"a":{"dtype":"F32","shape":[18446744073709551615,0],"data_offsets":[0,0]}}',b''),
 'shape beyond u64': f('{"a":{"dtype":"F32","shape":[18446744073709551616,0],"data_offsets":[0,0]}}',b''),
 'shape overflow then 0': f('{"a":{"dtype":"F32","shape":[4294967296,4294967296,0],"data_offsets":[0,0]}}',b''),
 'shape 0 then overflow': f('{"a":{"dtype":"F32","shape":[0,4294967296,4294967296],"data_offsets":[0,0]}}',b''),
 'shape empty': f('{"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}',d[:4]),
 'shape missing': f('{"a":{"dtype":"F32","data_offsets":[0,16]}}'),
 'offsets 3': f('{"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16,32]}}'),
 'offsets 1': f('{"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0]}}'),
 'offsets swapped': f('{"a":{"dtype":"F32","shape":[2,2],"data_offsets":[16,0]}}'),
 'offsets null': f('{"a":{"dtype":"F32","shape":[2,2],"data_offsets":null}}'),
 'size wrong': f('{"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,16]}}'),
 'gap': f('{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}}'),
 'rest': f('{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'),
 'overlap': f('{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"b":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}}'),
 'empty in the middle': f('{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"e":{"dtype":"F32","shape":[0],"data_offsets":[8,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}}'),
 'empty elsewhere': f('{"a":{%s},"e":{"dtype":"F32","shape":[0],"data_offsets":[4,4]}}'%E),
 'no tensors': f('{}',b''),
 'no tensors data': f('{}',b'x'),
 'only metadata': f('{"__metadata__":{"k":"v"}}',b''),
 'header list': f('[]',b''),
 'header null': f('null',b''),
 'header empty': f('',b''),
 'spaces behind': f('{"a":{%s}}   '%E),
 'tabs behind': f('{"a":{%s}}\t\n'%E),
 'space before': f(' {"a":{%s}}'%E),
 'junk behind': f('{"a":{%s}}x'%E),
 'nul behind': f(('{"a":{%s}}'%E).encode()+b'\0'),
 'trailing comma': f('{"a":{%s},}'%E),
 'comment': f('{/**/"a":{%s}}'%E),
 'not utf8': f(b'{"\xff":{'+E.encode()+b'}}'),
 'escape': f('{"\\u0061\\n\\ud83d\\ude00":{%s}}'%E),
 'lone surrogate': f('{"\\ud83d":{%s}}'%E),
 'nul in name': f('{"a\\u0000b":{%s}}'%E),
 'control in name': f(b'{"a\x01b":{'+E.encode()+b'}}'),
 'empty name': f('{"":{%s}}'%E),
 'overlong utf8': f(b'{"\xc0\x80":{'+E.encode()+b'}}'),
 'surrogate utf8': f(b'{"\xed\xa0\x80":{'+E.encode()+b'}}'),
 'n too large': f('{"a":{%s}}'%E, n=1000),
 'n beyond': f('{"a":{%s}}'%E, n=100000001),
 'short': b'\1\0\0\0',
 'empty file': b'',
 'bool': f('{"a":{"dtype":"BOOL","shape":[16],"data_offsets":[0,16]}}'),
 'c64': f('{"a":{"dtype":"C64","shape":[2],"data_offsets":[0,16]}}'),
 'f8 e8m0': f('{"a":{"dtype":"F8_E8M0","shape":[16],"data_offsets":[0,16]}}'),
 'f4': f('{"a":{"dtype":"F4","shape":[32],"data_offsets":[0,16]}}'),
 'f4 odd': f('{"a":{"dtype":"F4","shape":[31],"data_offsets":[0,16]}}'),
 'f4 wrong': f('{"a":{"dtype":"F4","shape":[30],"data_offsets":[0,16]}}'),
 'f6': f('{"a":{"dtype":"F6_E2M3","shape":[16],"data_offsets":[0,12]}}',d[:12]),
 'deep unknown': f('{"a":{%s,"z":%s}}'%(E,'['*100+']'*100)),
 'deeper unknown': f('{"a":{%s,"z":%s}}'%(E,'['*200+']'*200)),
 'big number unknown': f('{"a":{%s,"z":1e999}}'%E),
 'big int unknown': f('{"a":{%s,"z":123456789012345678901234567890}}'%E),
 'nan unknown': f('{"a":{%s,"z":NaN}}'%E),
 'u64 unknown': f('{"a":{%s,"z":18446744073709551615}}'%E),
 'ten axes': f('{"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,2,2],"data_offsets":[0,16]}}'),
}
out=[]
for name,b in cases.items():
    open('/tmp/st.bin','wb').write(b)
    try:
        with safe_open('/tmp/st.bin','numpy') as s:
            keys=sorted(s.keys()); ok='ok'
            shapes=','.join(f"{k!r}" for k in keys)
    except Exception as e: ok='refused'; shapes=str(e)[:60]
    out.append((name,ok,b.hex()))
    print(f'{name:24} {ok:8} {shapes}')
open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'cases.tsv'),'w').write(''.join('\t'.join(o)+'\n' for o in out))
print(safetensors.__version__)
