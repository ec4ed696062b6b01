// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/source/sourcetest"
	"github.com/gojail/gojail/internal/nstest"
	"github.com/gojail/gojail/internal/tarblock"
)

// pack compresses text with a program of this machine.
func pack(t *testing.T, text []byte, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Stdin = bytes.NewReader(text)
	packed, err := cmd.Output()
	require.NoError(t, err, "%s %v", program, args)
	return string(packed)
}

// skippable is a skippable frame of zstd, RFC 8878, 3.1.2.
func skippable(text string) string {
	return "\x5a\x2a\x4d\x18" + string([]byte{byte(len(text)), byte(len(text) >> 8), 0, 0}) + text
}

// expectBytes reads a layer, and compares the decompressed stream and the digest of all stored bytes, or the error.
func expectBytes(t *testing.T, name, stored, plain, refused string) {
	t.Helper()
	var out bytes.Buffer
	digest, err := (&Layer{}).Read(context.Background(), readOddly(stored), enough, confine, func(r io.Reader) error {
		_, err := io.Copy(&out, r)
		return err
	})
	if refused != "" {
		require.ErrorContains(t, err, refused, name)
		assert.NotContains(t, err.Error(), "\n", name)
		return
	}
	require.NoError(t, err, name)
	sum := sha256.Sum256([]byte(stored))
	assert.Equal(t, "sha256:"+hex.EncodeToString(sum[:]), digest, "%s: the digest covers all bytes", name)
	assert.Equal(t, plain, out.String(), name)
}

// readOddly returns the bytes of text in pieces of an odd length, as a network does.
func readOddly(text string) io.Reader {
	return &oddReader{strings.NewReader(text)}
}

type oddReader struct{ r io.Reader }

func (o *oddReader) Read(p []byte) (int, error) { return o.r.Read(p[:min(len(p), 4093)]) }

// TestBytesAroundCompressedStreams has a table for each compression: what lies around a stream, and whether the tool of that
// compression reads it. NUL bytes after a stream are padding of a tape or of a block device: gzip(1) ignores them, the xz format has
// them, and layers of some builders have them with each compression. Anything else after a stream is refused, as by gzip(1), xz(1) and zstd(1).
func TestBytesAroundCompressedStreams(t *testing.T) {
	nstest.NeedRoot(t) // xz is confined
	text := sourcetest.Tar(t, "a=1", "b="+strings.Repeat("0123456789", 30_000))
	plain := string(text)
	for kind, c := range map[string]struct {
		args     []string
		damaged  string
		separate bool // NUL bytes may separate streams
	}{
		"gzip":  {[]string{"--stdout", "--no-name"}, "cannot decompress it with gzip: ", false},
		"zstd":  {[]string{"--stdout", "--quiet", "--check"}, "cannot decompress it with zstd: ", false},
		"bzip2": {[]string{"--stdout"}, "cannot decompress it with bzip2: ", false},
		"xz":    {[]string{"--stdout"}, "cannot decompress it with xz: ", true},
	} {
		t.Run(kind, func(t *testing.T) {
			whole := pack(t, text, kind, c.args...)
			one, two := pack(t, text[:5000], kind, c.args...), pack(t, text[5000:], kind, c.args...)
			empty := pack(t, nil, kind, c.args...)
			trailing := "trailing data after the end of the " + kind + " stream"
			cut := "it is cut off: get it again"
			rows := map[string]struct{ stored, plain, refused string }{
				"alone":                     {whole, plain, ""},
				"two members":               {one + two, plain, ""},
				"empty member":              {empty, "", ""},
				"empty member first":        {empty + whole, plain, ""},
				"empty member last":         {whole + empty, plain, ""},
				"many empty members":        {strings.Repeat(empty, 300) + whole + strings.Repeat(empty, 300), plain, ""},
				"empty member, NUL":         {empty + zeros(17), "", ""},
				"junk of one byte":          {whole + "x", "", trailing},
				"junk of two bytes":         {whole + "BX", "", trailing},
				"junk":                      {whole + "junk after the end", "", trailing},
				"junk of a megabyte":        {whole + strings.Repeat("junk", 250_000), "", trailing},
				"junk after NUL":            {whole + zeros(512) + "junk", "", trailing},
				"junk between members":      {one + "junk" + two, "", trailing},
				"other compression":         {whole + "\x04\x22\x4d\x18", "", trailing},
				"cut in the middle":         {whole[:len(whole)/2], "", cut},
				"cut in the header":         {whole[:6], "", cut},
				"cut in the second member":  {one + two[:len(two)/2], "", cut},
				"cut in the second's magic": {one + two[:1], "", trailing},
				"wrong byte":                {whole[:len(whole)/2] + flip(whole[len(whole)/2:]), "", c.damaged},
			}
			for _, n := range []int{1, 2, 3, 4, 17, 512, 10240, 200_000} {
				rows[fmt.Sprintf("%d NUL", n)] = struct{ stored, plain, refused string }{whole + zeros(n), plain, ""}
				rows[fmt.Sprintf("two members, %d NUL", n)] = struct{ stored, plain, refused string }{one + two + zeros(n), plain, ""}
				between := struct{ stored, plain, refused string }{one + zeros(n) + two, "", trailing}
				if c.separate && n%4 == 0 {
					between = struct{ stored, plain, refused string }{one + zeros(n) + two, plain, ""}
				} else if c.separate {
					between.refused = c.damaged
				}
				rows[fmt.Sprintf("%d NUL between members", n)] = between
			}
			for n := 1; n <= 12; n++ { // the footer: lengths and checksums
				rows[fmt.Sprintf("cut %d bytes before the end", n)] = struct{ stored, plain, refused string }{whole[:len(whole)-n], "", cut}
			}
			for name, row := range rows {
				expectBytes(t, kind+", "+name, row.stored, row.plain, row.refused)
			}
		})
	}
}

func zeros(n int) string { return strings.Repeat("\x00", n) }

// flip changes the first byte.
func flip(text string) string { return string(text[0]^0xff) + text[1:] }

// TestFramesOfZstd: pzstd begins with a skippable frame, zstd:chunked ends with some.
func TestFramesOfZstd(t *testing.T) {
	text := sourcetest.Tar(t, "a=1", "b="+strings.Repeat("0123456789", 30_000))
	whole := pack(t, text, "zstd", "--stdout", "--quiet")
	for name, row := range map[string]struct{ stored, plain, refused string }{
		"skippable before":            {skippable("x") + whole, string(text), ""},
		"skippable after":             {whole + skippable("index\x00\x00"), string(text), ""},
		"skippable after, and NUL":    {whole + skippable("\x00") + zeros(99), string(text), ""},
		"skippable between":           {whole + skippable("") + whole, string(text) + string(text), ""},
		"skippable alone":             {skippable("x"), "", ""},
		"skippable of a large window": {skippable(strings.Repeat("x", 60_000)) + whole, string(text), ""},
		"skippable, cut":              {whole + skippable("index")[:10], "", "cut off"},
		"skippable, cut in its size":  {whole + skippable("index")[:6], "", "cut off"},
		"skippable, then junk":        {skippable("x") + "junk", "", "trailing data after the end of the zstd stream"},
		"without a checksum":          {pack(t, text, "zstd", "--stdout", "--quiet", "--no-check") + zeros(17), string(text), ""},
		"ends with a raw block":       {pack(t, []byte("abc\x00\x00"), "zstd", "--stdout", "--quiet", "--no-check") + zeros(3), "abc\x00\x00", ""},
		"blocks of one byte":          {pack(t, bytes.Repeat([]byte("\x00"), 1<<20), "zstd", "--stdout", "--quiet", "-19") + zeros(3), zeros(1 << 20), ""},
		"long window":                 {pack(t, text, "zstd", "--stdout", "--quiet", "--long=27") + zeros(3), string(text), ""},
		"too long a window":           {"\x28\xb5\x2f\xfd\x04\xa8" + zeros(30), "", "cannot decompress it with zstd: "},
		"dictionary":                  {"\x28\xb5\x2f\xfd\x01\x00\x07" + zeros(30), "", "cannot decompress it with zstd: "},
		"wrong checksum":              {whole[:len(whole)-1] + flip(whole[len(whole)-1:]), "", "cannot decompress it with zstd: "},
	} {
		expectBytes(t, name, row.stored, row.plain, row.refused)
	}
}

// TestBlocksOfXZ: checks of each kind, several blocks, and what looks like a footer within a stream.
func TestBlocksOfXZ(t *testing.T) {
	nstest.NeedRoot(t)
	text := sourcetest.Tar(t, "a="+strings.Repeat("YZ", 50_000), "b="+strings.Repeat("0123456789", 30_000))
	for _, args := range [][]string{{"--check=none"}, {"--check=crc32"}, {"--check=sha256"}, {"--block-size=10000"}, {"-0"}, {"--threads=2"}} {
		whole := pack(t, text, "xz", append([]string{"--stdout"}, args...)...)
		inner := sourcetest.Tar(t, "x.xz="+whole, "after=1")
		packed := pack(t, inner, "xz", "--stdout", "-0")
		name := fmt.Sprint(args)
		expectBytes(t, name, whole+zeros(17), string(text), "")
		expectBytes(t, name, packed, string(inner), "")
		expectBytes(t, name, packed+"junk", "", "trailing data after the end of the xz stream")
		expectBytes(t, name, packed[:len(packed)/2]+flip(packed[len(packed)/2:]), "", "xz")
	}
}

// TestMembersOfGzip: headers with all fields, and checksums.
func TestMembersOfGzip(t *testing.T) {
	text := sourcetest.Tar(t, "a=1", "b="+strings.Repeat("0123456789", 3000))
	whole := pack(t, text, "gzip", "--stdout", "--no-name")
	fields := "\x1f\x8b\x08\x1c\x00\x00\x00\x00\x00\x03" + "\x02\x00ab" + "name\x00" + "comment\x00" + whole[10:]
	end := len(whole)
	for name, row := range map[string]struct{ stored, plain, refused string }{
		"name, comment and extra field": {fields + whole + zeros(17), string(text) + string(text), ""},
		"an index as of eStargz":        {whole + "\x1f\x8b\x08\x04\x00\x00\x00\x00\x00\xff\x02\x00ab\x01\x00\x00\xff\xff" + zeros(8), string(text), ""},
		"wrong checksum":                {whole[:end-8] + flip(whole[end-8:]), "", "cannot decompress it with gzip: gzip: invalid checksum"},
		"wrong length":                  {whole[:end-4] + flip(whole[end-4:]), "", "cannot decompress it with gzip: gzip: invalid checksum"},
		"unknown method":                {"\x1f\x8b\x07" + whole[3:], "", "cannot decompress it with gzip: gzip: invalid header"},
		"second of unknown method":      {whole + "\x1f\x8b\x07" + whole[3:], "", "cannot decompress it with gzip: gzip: invalid header"},
	} {
		expectBytes(t, name, row.stored, row.plain, row.refused)
	}
}

// TestPlainStreams: a name may begin as a compressed stream does. What is no tar stream is named.
func TestPlainStreams(t *testing.T) {
	for _, name := range []string{"BZhang", "PK\x03\x04", "070701", "\x1f\x8b", "LZIP", "hsqs", "\x28\xb5\x2f\xfd"} {
		text := string(sourcetest.Tar(t, name+"=1"))
		if name[0] < ' ' || name[0] == '(' || strings.Contains(name, "\x03") { // in a pax record; the header has another name
			text = string(withName(text, name))
		}
		expectBytes(t, name, text, text, "")
	}
	expectBytes(t, "nothing", "", "", "")
	expectBytes(t, "NUL bytes only", zeros(10240), zeros(10240), "")
	for kind, stored := range map[string]string{
		"lz4":           "\x04\x22\x4d\x18dpackage",
		"lzip":          "LZIP\x01" + zeros(600),
		"lzop":          "\x89LZO\x00\r\n\x1a\n" + zeros(600),
		"compress":      "\x1f\x9d\x90" + zeros(600),
		"lzma":          "\x5d\x00\x00\x80\x00\xff\xff\xff\xff\xff\xff\xff\xff",
		"zip":           "PK\x03\x04" + zeros(600),
		"7-Zip":         "7z\xbc\xaf\x27\x1c" + zeros(600),
		"cpio":          "070701" + strings.Repeat("0", 600),
		"rpm":           "\xed\xab\xee\xdb" + zeros(600),
		"Debian":        "!<arch>\ndebian-binary" + zeros(600),
		"squashfs":      "hsqs" + zeros(600),
		"SIF":           "#!/usr/bin/env run-singularity\n\x00SIF_MAGIC\x0001" + zeros(600),
		"a qcow2 image": "QFI\xfb" + zeros(600),
		"HTML":          "<!DOCTYPE html><html>" + zeros(600),
	} {
		expectBytes(t, kind, stored, "", "it is not a tar archive, but ")
		expectBytes(t, kind, stored, "", kind)
	}
}

// withName exchanges the name in the first header of an archive.
func withName(text, name string) []byte {
	out := []byte(text)
	copy(out[:100], zeros(100))
	copy(out, name)
	copy(out[148:156], "        ")
	sum := 0
	for _, c := range out[:512] {
		sum += int(c)
	}
	copy(out[148:156], fmt.Sprintf("%06o\x00 ", sum))
	return out
}

// TestArchivesOfBlobs covers archives that are read in place.
func TestArchivesOfBlobs(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	sparse, err := os.Create(filepath.Join(dir, "sparse"))
	require.NoError(t, err)
	_, err = sparse.WriteAt([]byte("x"), 1<<20)
	require.NoError(t, err)
	require.NoError(t, sparse.Close())
	tar := func(args ...string) string {
		return pack(t, nil, "tar", slices.Concat([]string{"--create", "--file=-", "--directory=" + dir, "--sparse"}, args, []string{"sparse"})...)
	}
	contiguous := []byte(withName(string(sourcetest.Tar(t, "index.json={}")), "index.json"))
	tarblock.SetType(contiguous, '7')
	for name, row := range map[string]struct{ text, refused string }{
		"name like a magic number": {string(sourcetest.Tar(t, "BZh9=1", "index.json={}")), ""},
		"contiguous file":          {string(contiguous), ""},
		"NUL bytes at the end":     {string(sourcetest.Tar(t, "index.json={}")) + zeros(99), ""},
		"gzip":                     {pack(t, sourcetest.Tar(t, "index.json={}"), "gzip", "--stdout"), "it is compressed with gzip; decompress it first"},
		"zip":                      {"PK\x03\x04" + zeros(600), "it is not a tar archive, but a zip archive"},
		"sparse, of old":           {tar("--format=gnu"), "sparse is a sparse file in it; make the archive anew without --sparse"},
		"sparse 0.0":               {tar("--format=posix", "--sparse-version=0.0"), "sparse is a sparse file in it"},
		"sparse 0.1":               {tar("--format=posix", "--sparse-version=0.1"), "sparse is a sparse file in it"},
		"sparse 1.0":               {tar("--format=posix", "--sparse-version=1.0"), "sparse is a sparse file in it"},
	} {
		b, err := openTarBlobs(write("archive", row.text))
		if row.refused != "" {
			require.ErrorContains(t, err, row.refused, name)
			continue
		}
		require.NoError(t, err, name)
		text, err := readDocument(b, "index.json")
		require.NoError(t, err, name)
		assert.Equal(t, "{}", string(text), name)
		require.NoError(t, b.Close())
	}
}
