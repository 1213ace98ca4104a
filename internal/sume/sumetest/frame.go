package sumetest

import (
	"encoding/binary"
	"io"
)

// Frame types of HTTP/2.
const (
	FrameHeaders = 0x1
	FrameReset   = 0x3
	FrameGoAway  = 0x7
)

// Error codes of HTTP/2.
const (
	CodeNone     = 0x0
	CodeProtocol = 0x1
	CodeInternal = 0x2
	CodeRefused  = 0x7
)

// Frame is one frame of HTTP/2.
type Frame struct {
	Type, Flags byte
	Stream      uint32
	Payload     []byte
}

// frames calls each for every frame until the connection ends.
func frames(from io.Reader, each func(*Frame) error) error {
	for {
		var head [9]byte
		if _, err := io.ReadFull(from, head[:]); err != nil {
			return err
		}
		f := &Frame{
			Type: head[3], Flags: head[4], Stream: binary.BigEndian.Uint32(head[5:]),
			Payload: make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2])),
		}
		if _, err := io.ReadFull(from, f.Payload); err != nil {
			return err
		}
		if err := each(f); err != nil {
			return err
		}
	}
}

func (f *Frame) writeTo(w io.Writer) error {
	n := len(f.Payload)
	out := []byte{byte(n >> 16), byte(n >> 8), byte(n), f.Type, f.Flags}
	out = append(binary.BigEndian.AppendUint32(out, f.Stream), f.Payload...)
	_, err := w.Write(out)
	return err
}

// Words encodes the payload of a frame of 32-bit numbers, such as GOAWAY (last
// stream, code) and RST_STREAM (code).
func Words(numbers ...uint32) []byte {
	var out []byte
	for _, n := range numbers {
		out = binary.BigEndian.AppendUint32(out, n)
	}
	return out
}
