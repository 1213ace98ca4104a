package sumetest

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"sync"
)

// zippedMiB is a MiB of spaces, compressed to a KiB.
var zippedMiB = sync.OnceValue(func() []byte { return zipped(bytes.Repeat([]byte(" "), 1<<20)) })

// sendZipped sends the body and a number of spaces after it, compressed. The
// parts are members of one gzip stream, so that a large body is cheap to make.
func sendZipped(w http.ResponseWriter, r *http.Request, body []byte, spaces int) {
	_, err := w.Write(zipped(body))
	for ; spaces >= 1<<20 && err == nil && r.Context().Err() == nil; spaces -= 1 << 20 {
		_, err = w.Write(zippedMiB())
	}
	if spaces > 0 && spaces < 1<<20 && err == nil {
		_, _ = w.Write(zipped(bytes.Repeat([]byte(" "), spaces)))
	}
}

func zipped(data []byte) []byte {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	_, _ = zip.Write(data)
	_ = zip.Close()
	return out.Bytes()
}
