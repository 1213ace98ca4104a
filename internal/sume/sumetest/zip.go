package sumetest

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"sync"
)

// zippedBlanks is a MiB of blanks, compressed to a KiB.
var zippedBlanks = sync.OnceValue(func() []byte { return zipped(bytes.Repeat([]byte(" "), 1<<20)) })

// sendZipped sends the body and so many blanks behind it compressed. The parts
// are members of one gzip stream, so that the largest bomb costs no more than
// it is long.
func sendZipped(w http.ResponseWriter, r *http.Request, body []byte, blanks int) {
	_, err := w.Write(zipped(body))
	for ; blanks >= 1<<20 && err == nil && r.Context().Err() == nil; blanks -= 1 << 20 {
		_, err = w.Write(zippedBlanks())
	}
	if blanks > 0 && blanks < 1<<20 && err == nil {
		_, _ = w.Write(zipped(bytes.Repeat([]byte(" "), blanks)))
	}
}

func zipped(text []byte) []byte {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	_, _ = zip.Write(text)
	_ = zip.Close()
	return out.Bytes()
}
