// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"encoding/base64"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// sample is an image of a few entries and what becomes of it.
type sample struct {
	layers  []string         // tar streams
	policy  *Policy          // nil: layerPolicy
	want    []string         // as describeTree lists it
	refused string           // a part of the error; want is not compared
	leftOut map[string]int64 // what is counted as left out
	umoci   string           // what umoci does with it, where that differs, and why
}

func (s sample) choosePolicy() Policy {
	if s.policy != nil {
		return *s.policy
	}
	return layerPolicy
}

// plainFile is an entry a=1.
var plainFile = raw{flag: '0', name: "a", text: "1"}.String()

// one returns the only layer of an image.
func one(blocks ...string) []string { return []string{strings.Join(blocks, "") + ending} }

// several returns layers of entries.
func several(t testing.TB, layers ...[]entry) (streams []string) {
	for _, layer := range layers {
		streams = append(streams, packArchive(t, layer...).String())
	}
	return streams
}

func runShell(dir, script string) (string, error) {
	cmd := exec.Command("bash", "-ec", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Reasons of umoci.
const (
	ignoresType   = "refuses it: it knows the types of archive/tar only"
	ignoresGlobal = "refuses it: it knows no global headers"
)

// typeSamples has an entry of each type that POSIX, GNU tar, bsdtar, star or Solaris defines.
func typeSamples() map[string]sample {
	named := func(flag byte) string { return raw{flag: flag, name: "f", text: "text"}.String() }
	const gnu = "ustar  \x00"
	return map[string]sample{
		"0, a file":             {layers: one(named('0')), want: []string{"f=text"}},
		"NUL, a file":           {layers: one(named(0)), want: []string{"f=text"}},
		"NUL of version 7":      {layers: one(raw{name: "f", text: "text", magic: nul(8)}.String()), want: []string{"f=text"}},
		"7, a contiguous file":  {layers: one(named('7')), want: []string{"f=text"}, umoci: ignoresType},
		"1, a hard link":        {layers: one(plainFile, raw{flag: '1', name: "f", link: "a"}.String()), want: []string{"a=1", "f&a"}},
		"2, a symbolic link":    {layers: one(raw{flag: '2', name: "f", link: "to"}.String()), want: []string{"f>to"}},
		"3, a character device": {layers: one(raw{flag: '3', name: "f", device: "0000001\x000000003\x00"}.String()), leftOut: map[string]int64{leftDevices: 1}, umoci: "makes it"},
		"4, a block device":     {layers: one(raw{flag: '4', name: "f", device: "0000001\x000000003\x00"}.String()), leftOut: map[string]int64{leftDevices: 1}, umoci: "makes it"},
		"3, made": {layers: one(raw{flag: '3', name: "f", device: "0000001\x000000003\x00"}.String()),
			policy: &Policy{Devices: DevicesMake, Whiteouts: true}, want: []string{"f%1:3"}},
		"3, out of range": {layers: one(raw{flag: '3', name: "f", device: base256(1<<32, 8) + "0000003\x00"}.String()),
			policy: &Policy{Devices: DevicesMake}, refused: `character device "f": the device number 4294967296:3 is out of range`, umoci: "takes it modulo 2^32"},
		"5, a directory":                  {layers: one(raw{flag: '5', name: "f/", mode: "0000755"}.String()), want: []string{"f/"}},
		"5 without a slash":               {layers: one(raw{flag: '5', name: "f", mode: "0000755"}.String()), want: []string{"f/"}},
		"5 with a size, but no content":   {layers: one(raw{flag: '5', name: "f/", mode: "0000755", size: "00000001000"}.String(), plainFile), want: []string{"a=1", "f/"}},
		"6, a FIFO":                       {layers: one(raw{flag: '6', name: "f"}.String()), want: []string{"f|"}},
		"6 with a size, but no content":   {layers: one(raw{flag: '6', name: "f", size: "00000001000"}.String(), plainFile), want: []string{"a=1", "f|"}},
		"x, for the next file":            {layers: one(extended('x', "path", "long", "uid", "7"), named('0'), plainFile), want: []string{"a=1", "long=text owner=7:0"}},
		"X, as of Solaris":                {layers: one(extended('X', "path", "long", "uid", "7"), named('0'), plainFile), want: []string{"a=1", "long=text owner=7:0"}, umoci: ignoresType},
		"X with a size":                   {layers: one(extended('X', "size", "4"), raw{flag: '0', name: "f", text: "text", size: "00000000000"}.String(), plainFile), want: []string{"a=1", "f=text"}, umoci: ignoresType},
		"x with a size":                   {layers: one(extended('x', "size", "4"), raw{flag: '0', name: "f", text: "text", size: "00000000000"}.String(), plainFile), want: []string{"a=1", "f=text"}},
		"x for nothing":                   {layers: one(plainFile, extended('x', "path", "b")), want: []string{"a=1"}},
		"x of more than a mebibyte":       {layers: one(extended('x', "comment", strings.Repeat("x", 1<<20)), plainFile), refused: "the archive is damaged after 0 entries: an extended header has 1048593 bytes; the limit is 1048576"},
		"x that is damaged":               {layers: one(raw{flag: 'x', name: "x", text: "99 path=b\n"}.String(), plainFile), refused: "the archive is damaged after 0 entries: "},
		"L, a long name":                  {layers: one(raw{flag: 'L', name: "././@LongLink", text: strings.Repeat("n", 200) + "\x00", magic: gnu}.String(), named('0')), want: []string{strings.Repeat("n", 200) + "=text"}},
		"K, a long target":                {layers: one(raw{flag: 'K', name: "././@LongLink", text: strings.Repeat("n", 200) + "\x00", magic: gnu}.String(), raw{flag: '2', name: "f", link: "to", magic: gnu}.String()), want: []string{"f>" + strings.Repeat("n", 200)}},
		"K and L":                         {layers: one(raw{flag: 'K', text: "target\x00", magic: gnu}.String(), raw{flag: 'L', text: "long\x00", magic: gnu}.String(), raw{flag: '2', name: "f", magic: gnu}.String()), want: []string{"long>target"}},
		"D, a directory of GNU tar":       {layers: one(raw{flag: 'D', name: "f/", mode: "0000755", text: "Ya\x00\x00", magic: gnu}.String(), raw{flag: '0', name: "f/a", text: "1"}.String()), want: []string{"f/", "f/a=1"}, umoci: ignoresType},
		"D at the root":                   {layers: one(raw{flag: 'D', name: "./", mode: "0000755", text: "Ya\x00\x00", magic: gnu}.String(), plainFile), want: []string{"a=1"}, umoci: "refuses it: the root may be of type 5 only"},
		"V, a label":                      {layers: one(raw{flag: 'V', name: "my label", magic: gnu}.String(), plainFile), want: []string{"a=1"}, umoci: ignoresType},
		"V like a name that is refused":   {layers: one(raw{flag: 'V', name: "..", magic: gnu}.String(), plainFile), want: []string{"a=1"}, umoci: ignoresType},
		"V like a whiteout":               {layers: one(plainFile, raw{flag: 'V', name: ".wh.a", magic: gnu}.String()), want: []string{"a=1"}},
		"M, the rest of a file":           {layers: one(raw{flag: 'M', name: "f", text: "text", magic: gnu}.String()), refused: `entry 1 of the archive, type "M" "f": is the rest of a file that begins in another volume; join the volumes: `},
		"N, names of an old GNU tar":      {layers: one(raw{flag: 'N', name: "f", text: "Rename a to b\n", magic: gnu}.String()), refused: `type "N" "f": is a list of names to be changed, as GNU tar before 1.12 wrote it; make the archive anew`},
		"I, metadata of star":             {layers: one(named('I')), refused: `type "I" "f": has no content, because it did not change since an earlier dump of star`},
		"A, an access list of Solaris":    {layers: one(raw{flag: 'A', name: "f", text: "1000003\x00user::rw-"}.String(), plainFile), want: []string{"a=1"}, leftOut: map[string]int64{leftAttributes: 1}, umoci: ignoresType},
		"E, an attribute of Solaris":      {layers: one(raw{flag: 'E', name: "/dev/null/attr.hdr", text: "1.0"}.String(), raw{flag: '0', name: "/dev/null/attr", text: "value"}.String(), plainFile), want: []string{"a=1"}, leftOut: map[string]int64{leftAttributes: 1}, umoci: ignoresType},
		"E without its attribute":         {layers: one(raw{flag: 'E', name: "/dev/null/attr.hdr", text: "1.0"}.String(), plainFile), want: []string{"a=1"}, leftOut: map[string]int64{leftAttributes: 1}, umoci: ignoresType},
		"S of star":                       {layers: one(raw{flag: 'S', name: "f", text: "text"}.String()), refused: "the archive is damaged after 0 entries: "},
		"Z, of nobody":                    {layers: one(named('Z')), refused: `entry 1 of the archive, type "Z" "f": gojail does not know this type, which may have any meaning; make the archive anew with GNU tar`},
		"8, reserved":                     {layers: one(named('8')), refused: `type "8" "f": gojail does not know this type`},
		"a blank":                         {layers: one(named(' ')), refused: `type " " "f": gojail does not know this type`},
		"a byte that is no ASCII":         {layers: one(named(0xff)), refused: `"f": gojail does not know this type`},
		"NUL with a slash, a directory":   {layers: one(raw{name: "f/", mode: "0000755", magic: nul(8)}.String()), want: []string{"f/"}},
		"0 with a slash":                  {layers: one(raw{flag: '0', name: "f/", mode: "0000755"}.String()), want: []string{"f/"}, umoci: "makes a file"},
		"7 with a slash":                  {layers: one(raw{flag: '7', name: "f/", mode: "0000755"}.String()), want: []string{"f/"}, umoci: ignoresType},
		"0 with slashes in a long name":   {layers: one(extended('x', "path", "long//"), raw{flag: '0', name: "f", mode: "0000755"}.String()), want: []string{"long/"}, umoci: "makes a file"},
		"sparse file of star":             {layers: one(extended('x', "SCHILY.realsize", "99"), named('0')), refused: `file "f": is a sparse file in the format of star; make the archive anew with GNU tar`, umoci: "takes its map for content"},
		"sparse file of an unknown form":  {layers: one(extended('x', "GNU.sparse.major", "2", "GNU.sparse.minor", "0"), named('0')), refused: `file "f": is a sparse file in the unknown format "2.0"; `, umoci: "takes its map for content"},
		"a file in volumes, as of pax":    {layers: one(extended('g', "GNU.volume.filename", "f", "GNU.volume.offset", "512"), named('0')), refused: `entry 1 of the archive, global header "PaxHeaders/x": is the rest of a file that begins in another volume`},
		"a label, as of pax":              {layers: one(extended('g', "GNU.volume.label", "mine"), plainFile), want: []string{"a=1"}, umoci: ignoresGlobal},
		"g with an owner and a time":      {layers: one(extended('g', "uid", "7", "gid", "8", "mtime", "-5.25", "path", "no", "linkpath", "no", "size", "9"), plainFile, extended('x', "uid", "9", "mtime", ""), named('0')), want: []string{"a=1 owner=7:8 time=-6.750000000", "f=text owner=9:8"}, umoci: ignoresGlobal},
		"g that another one takes back":   {layers: one(extended('g', "uid", "7", "gid", "8"), extended('g', "uid", "", "gid", "9"), plainFile), want: []string{"a=1 owner=0:9"}, umoci: ignoresGlobal},
		"g with an owner that is none":    {layers: one(extended('g', "uid", "x"), plainFile), refused: `global header "PaxHeaders/x": its records are damaged`},
		"g with an attribute":             {layers: one(extended('g', "SCHILY.xattr.user.a", "b"), plainFile), want: []string{"a=1"}, leftOut: map[string]int64{leftAttributes: 1}, umoci: ignoresGlobal},
		"1 with content, as of pax":       {layers: one(plainFile, raw{flag: '1', name: "g", link: "a", text: "1"}.String(), named('0')), want: []string{"a=1", "f=text", "g&a"}, umoci: "refuses it: archive/tar takes the content for a header"},
		"1 with a size, but no content":   {layers: one(plainFile, raw{flag: '1', name: "g", link: "a", size: "00000001000"}.String(), named('0')), want: []string{"a=1", "f=text", "g&a"}},
		"1 with a size at the end":        {layers: one(plainFile, raw{flag: '1', name: "g", link: "a", size: "00000001000"}.String()), want: []string{"a=1", "g&a"}},
		"1 with content of NUL, and x":    {layers: one(plainFile, extended('x', "mtime", "1"), raw{flag: '1', name: "g", link: "a", text: nul(600)}.String(), named('0')), want: []string{"a=1", "f=text", "g&a"}, umoci: "stops there: archive/tar takes the content for the end"},
		"1 with much content, at the end": {layers: []string{plainFile + raw{flag: '1', name: "g", link: "a", text: strings.Repeat("x", 9000)}.String()}, want: []string{"a=1", "g&a"}, umoci: "refuses it: archive/tar takes the content for a header"},
		"1 with content that is cut off":  {layers: []string{plainFile + raw{flag: '1', name: "g", link: "a", text: strings.Repeat("x", 9000)}.String()[:5000]}, refused: `the archive is damaged after 1 entries, the last one file "a": unexpected EOF`},
	}
}

// shapeSamples has names, links and numbers of odd forms.
func shapeSamples(t testing.TB) map[string]sample {
	numbered := func(change func(*raw)) string {
		r := raw{flag: '0', name: "f", text: "1"}
		change(&r)
		return r.String()
	}
	return map[string]sample{
		"names with dots and slashes":      {layers: several(t, []entry{directory("./d//"), file("./d/.//a", "1"), file("d/x/../b", "2"), directory("d/./c/.")}), want: []string{"d/", "d/a=1", "d/b=2", "d/c/"}},
		"absolute names":                   {layers: several(t, []entry{directory("/d"), file("//d/a", "1"), link("/d/l", "/d/a"), symlink("/d/s", "/d/a")}), want: []string{"d/", "d/a=1", "d/l&d/a", "d/s>/d/a"}},
		"names that lead out":              {layers: several(t, []entry{directory("../../d"), file("d/../../../d/a", "1"), link("l", "../../../d/a"), symlink("s", "../../..")}), want: []string{"d/", "d/a=1", "l&d/a", "s>../../.."}},
		"through links that lead out":      {layers: several(t, []entry{directory("d"), symlink("s", "../../d"), file("s/a", "1"), symlink("t", "/d"), file("t/b", "2")}), want: []string{"d/", "d/a=1", "d/b=2", "s>../../d", "t>/d"}},
		"the root":                         {layers: several(t, []entry{directory("."), file("a", "1"), directory("/"), directory("")}), want: []string{"a=1"}},
		"the root as a file":               {layers: several(t, []entry{file(".", "1")}), refused: `entry 1 of the archive, file ".": the root of a tree must be a directory`},
		"the root as a hard link":          {layers: several(t, []entry{file("a", "1"), link("./", "a")}), refused: `entry 2 of the archive, hard link "./": the root of a tree must be a directory`},
		"the root as a FIFO":               {layers: one(raw{flag: '6', name: "/"}.String()), refused: `FIFO "/": the root of a tree must be a directory`},
		"no name":                          {layers: one(raw{flag: '0', text: "1"}.String()), refused: `file "": the root of a tree must be a directory`},
		"a long name of ustar":             {layers: one(raw{flag: '0', name: strings.Repeat("n", 100), rest: "d/e", text: "1"}.String()), want: []string{"d/", "d/e/", "d/e/" + strings.Repeat("n", 100) + "=1"}},
		"a name of 100 bytes":              {layers: one(raw{flag: '0', name: strings.Repeat("n", 100), magic: nul(8), text: "1"}.String()), want: []string{strings.Repeat("n", 100) + "=1"}},
		"a name of bytes":                  {layers: one(raw{flag: '0', name: "\xff\x01\n\x1b[2J", text: "1"}.String()), want: []string{"\xff\x01\n\x1b[2J=1"}},
		"a link to a later entry":          {layers: several(t, []entry{link("l", "a"), file("a", "1")}), refused: `entry 1 of the archive, hard link "l": hard link to "a": no such file or directory; it can only lead to an earlier entry`},
		"a link to a later lower one":      {layers: several(t, []entry{file("a", "1")}, []entry{link("l", "a"), file("a", "2")}), want: []string{"a=2", "l=1"}},
		"a name given twice to GNU tar":    {layers: []string{tarOf(t, "echo -n 1 >a; touch -d@1000000000 a; tar -cf archive --mode=644 --owner=0 --group=0 a ./a a")}, want: []string{"a=1"}, umoci: "refuses it: it removes the file before it links it"},
		"a link to itself, absent":         {layers: several(t, []entry{link("a", "a")}), refused: "no such file or directory"},
		"a link to itself, a lower file":   {layers: several(t, []entry{file("a", "1")}, []entry{link("a", "./a")}), want: []string{"a=1"}, umoci: "refuses it: it removes the file before it links it"},
		"a link to itself by another path": {layers: several(t, []entry{directory("d"), file("d/a", "1"), symlink("s", "d"), link("s/a", "d/a")}), want: []string{"d/", "d/a=1", "s>d"}, umoci: "refuses it: it removes the file before it links it"},
		"a link to a directory":            {layers: several(t, []entry{directory("d"), link("l", "d")}), refused: `hard link to the directory "d"`},
		"a link to the root":               {layers: several(t, []entry{link("l", "")}), refused: "hard link to the directory"},
		"a link to a symbolic link":        {layers: several(t, []entry{symlink("s", "nowhere"), link("l", "s")}), want: []string{"l>nowhere", "s&l"}},
		"a link to a FIFO":                 {layers: one(raw{flag: '6', name: "p"}.String(), raw{flag: '1', name: "q", link: "p"}.String()), want: []string{"p|", "q&p"}},
		"a link to a device left out":      {layers: one(raw{flag: '3', name: "n"}.String(), raw{flag: '1', name: "q", link: "n"}.String()), leftOut: map[string]int64{leftDevices: 2}, umoci: "makes it"},
		"file, directory, file":            {layers: several(t, []entry{file("x", "1"), directory("x"), file("x/a", "2"), file("x", "3")}), want: []string{"x=3"}},
		"directory, link, directory":       {layers: several(t, []entry{directory("x"), file("x/a", "1"), symlink("x", "y"), directory("y"), directory("x"), file("x/b", "2")}), want: []string{"x/", "x/b=2", "y/"}},
		"a file twice":                     {layers: several(t, []entry{file("a", "1"), link("l", "a"), file("a", "2")}), want: []string{"a=2", "l=1"}},
		"a file where a directory is due":  {layers: several(t, []entry{file("a", "1"), file("a/b", "2")}), refused: `file "a/b": "/a" is not a directory`, umoci: "replaces the file with a directory; tar programs and other runtimes do not"},
		"a large owner":                    {layers: one(numbered(func(r *raw) { r.id = base256(1<<32-2, 8) })), want: []string{"f=1 owner=4294967294:4294967294"}},
		"an owner out of range":            {layers: one(numbered(func(r *raw) { r.id = base256(1<<32, 8) })), refused: `file "f": the owner 4294967296:4294967296 is out of range`, umoci: "takes it modulo 2^32"},
		"a negative owner":                 {layers: one(numbered(func(r *raw) { r.id = base256(-2, 8) })), refused: `file "f": the owner -2:-2 is out of range`, umoci: "takes it modulo 2^32"},
		"no owner":                         {layers: one(numbered(func(r *raw) { r.id = "        " })), want: []string{"f=1"}},
		"a negative time":                  {layers: one(numbered(func(r *raw) { r.time = base256(-5, 12) })), want: []string{"f=1 time=-5.000000000"}},
		"a late time":                      {layers: one(numbered(func(r *raw) { r.time = base256(1<<33, 12) })), want: []string{"f=1 time=8589934592.000000000"}},
		"fractions of a second":            {layers: one(extended('x', "mtime", "5.123456789123"), plainFile), want: []string{"a=1 time=5.123456789"}},
		"a size in base 256":               {layers: one(numbered(func(r *raw) { r.size = base256(1, 12) }), plainFile), want: []string{"a=1", "f=1"}},
		"a negative size":                  {layers: one(numbered(func(r *raw) { r.size = base256(-1, 12) })), refused: "the archive is damaged after 0 entries: "},
		"a huge size":                      {layers: one(numbered(func(r *raw) { r.size = "\x80\x00\x00\x00\x7f" + strings.Repeat("\xff", 7) })), refused: `file "f": the files have more than 1099511627776 bytes together`},
		"a size that is none":              {layers: one(numbered(func(r *raw) { r.size = "9" })), refused: "the archive is damaged after 0 entries: "},
		"all bits of a mode":               {layers: one(numbered(func(r *raw) { r.mode = "0177777" })), want: []string{"f=1 mode=1777"}, leftOut: map[string]int64{leftSetuid: 1}, umoci: "keeps set-ID bits"},
		"a blank checksum of a signed sum": {layers: one(raw{flag: '0', name: "\xe4\xf6", text: "1"}.String()), want: []string{"\xe4\xf6=1"}},
	}
}

// endSamples has ends of archives.
func endSamples() map[string]sample {
	const damaged = "the archive is damaged after 1 entries, the last one file \"a\": "
	more := "more entries follow the end of the archive at byte "
	return map[string]sample{
		"no end":                       {layers: []string{plainFile}, want: []string{"a=1"}},
		"one block of NUL":             {layers: []string{plainFile + nul(512)}, want: []string{"a=1"}},
		"NUL up to a record":           {layers: []string{plainFile + nul(9216)}, want: []string{"a=1"}},
		"part of a block of NUL":       {layers: []string{plainFile + nul(17)}, want: []string{"a=1"}, umoci: "refuses it: archive/tar wants a whole block"},
		"NUL after the end":            {layers: []string{plainFile + ending + nul(100_001)}, want: []string{"a=1"}},
		"no padding of a file":         {layers: []string{plainFile[:513]}, want: []string{"a=1"}},
		"cut off in a file":            {layers: []string{plainFile + raw{flag: '0', name: "b", text: "12345"}.String()[:514]}, refused: `entry 2 of the archive, file "b": cannot write the file: unexpected EOF`},
		"cut off in a header":          {layers: []string{plainFile + plainFile[:300]}, refused: damaged + "unexpected EOF"},
		"cut off in records":           {layers: []string{plainFile + extended('x', "path", "b")[:515]}, refused: damaged + "unexpected EOF"},
		"cut off in a skipped content": {layers: []string{plainFile + raw{flag: 'V', name: "v", text: strings.Repeat("x", 600)}.String()[:700]}, refused: "unexpected EOF"},
		"a second archive":             {layers: []string{plainFile + ending + plainFile + ending}, refused: more + "2048: it is several archives; unpack it with tar --ignore-zeros, and name the directory as dir:DIR", umoci: "ignores it, as most programs do"},
		"a second archive, far away":   {layers: []string{plainFile + nul(10240) + plainFile}, refused: more + "11264", umoci: "ignores it, as most programs do"},
		"a lone block of NUL":          {layers: []string{plainFile + nul(512) + plainFile + ending}, refused: more + "1536"},
		"junk after the end":           {layers: []string{plainFile + ending + strings.Repeat("junk", 200)}, want: []string{"a=1"}, leftOut: map[string]int64{leftTrailing: 800}},
		"junk after NUL":               {layers: []string{plainFile + ending + nul(1024) + "junk"}, want: []string{"a=1"}, leftOut: map[string]int64{leftTrailing: 4}},
		"junk in place of an entry":    {layers: []string{plainFile + strings.Repeat("junk", 300)}, refused: damaged + "byte 1024 is not the begin of a header with a checksum"},
		"nothing":                      {layers: []string{""}},
		"the end alone":                {layers: []string{ending}},
		"NUL, then junk":               {layers: []string{ending + "junk"}, refused: "the archive is damaged: it begins with NUL bytes, and other data follow", umoci: "takes it for empty"},
		"NUL, then an archive":         {layers: []string{ending + plainFile}, refused: more + "1024", umoci: "takes it for empty"},
		"junk":                         {layers: []string{strings.Repeat("junk", 300)}, refused: "the archive is damaged after 0 entries: it does not begin with a header, so it is no tar archive, or its compression is unknown"},
		"little junk":                  {layers: []string{"junk"}, refused: "the archive is damaged after 0 entries: it does not begin with a header"},
	}
}

// attributeSamples has extended attributes in the forms of all writers.
func attributeSamples() map[string]sample {
	with := func(words ...string) []string { return one(extended('x', words...), plainFile) }
	encode := func(text string) string { return base64.RawStdEncoding.EncodeToString([]byte(text)) }
	v3 := "\x01\x00\x00\x03" + nul(16) + "\xe8\x03\x00\x00"
	keep := &Policy{Devices: DevicesDrop, Setuid: true, Whiteouts: true}
	left := func(n int64) map[string]int64 { return map[string]int64{leftAttributes: n} }
	return map[string]sample{
		"of star and GNU tar":       {layers: with("SCHILY.xattr.user.a", "b"), want: []string{`a=1 user.a="b"`}},
		"of libarchive":             {layers: with("LIBARCHIVE.xattr.user.a", encode("b")), want: []string{`a=1 user.a="b"`}, umoci: "ignores it, as archive/tar does"},
		"of libarchive, padded":     {layers: with("LIBARCHIVE.xattr.user.a%20b", base64.StdEncoding.EncodeToString([]byte("bytes"))), want: []string{`a=1 user.a b="bytes"`}, umoci: "ignores it, as archive/tar does"},
		"both":                      {layers: with("LIBARCHIVE.xattr.user.a", encode("b"), "SCHILY.xattr.user.a", "b"), want: []string{`a=1 user.a="b"`}},
		"both, labels":              {layers: with("LIBARCHIVE.xattr.security.selinux", encode("b"), "SCHILY.xattr.security.selinux", "b"), want: []string{"a=1"}, leftOut: left(1)},
		"no base64":                 {layers: with("LIBARCHIVE.xattr.user.a", "%"), refused: `file "a": the extended attribute "user.a" is not in base64`, umoci: "ignores it, as archive/tar does"},
		"names that GNU tar writes": {layers: with("SCHILY.xattr.user.a%3Db%25", "c"), want: []string{`a=1 user.a=b%="c"`}, umoci: "keeps the form of the record as a name"},
		"an empty value":            {layers: with("SCHILY.xattr.user.a", ""), want: []string{`a=1 user.a=""`}, umoci: "ignores it, as archive/tar does"},
		"access lists":              {layers: with("SCHILY.acl.access", "user::rw-", "SCHILY.acl.default", "user::rw-", "SCHILY.acl.ace", "x"), want: []string{"a=1"}, leftOut: left(3)},
		"a label of GNU tar":        {layers: with("RHT.security.selinux", "x"), want: []string{"a=1"}, leftOut: left(1)},
		"marks of overlayfs":        {layers: with("SCHILY.xattr.trusted.overlay.opaque", "y", "SCHILY.xattr.user.overlay.whiteout", "y"), want: []string{"a=1"}, leftOut: left(2), umoci: "keeps those of user.*, and escapes the others"},
		"a capability":              {layers: with("SCHILY.xattr.security.capability", capability), want: []string{"a=1"}, leftOut: map[string]int64{leftCapability: 1}, umoci: "keeps it"},
		"a capability, kept":        {layers: with("SCHILY.xattr.security.capability", capability), policy: keep, want: []string{"a=1 security.capability=" + strconv.Quote(capability)}},
		"version 3, kept":           {layers: with("SCHILY.xattr.security.capability", v3), policy: keep, want: []string{"a=1 security.capability=" + strconv.Quote(v3)}},
		"version 3 of libarchive":   {layers: with("LIBARCHIVE.xattr.security.capability", encode(v3)), policy: keep, want: []string{"a=1 security.capability=" + strconv.Quote(v3)}, umoci: "ignores it, as archive/tar does"},
		"no capability":             {layers: with("SCHILY.xattr.security.capability", "x"), policy: keep, refused: `file "a": cannot set the extended attribute "security.capability": invalid argument`},
		"records of others":         {layers: with("SCHILY.fflags", "nodump", "LIBARCHIVE.creationtime", "5", "MSWINDOWS.rawsd", "x", "SUN.holesdata", "0", "comment", "x"), want: []string{"a=1"}},
	}
}

// whiteoutSamples has each order of a whiteout and its siblings.
func whiteoutSamples(t testing.TB) map[string]sample {
	lower := []entry{directory("d"), file("d/a", "1"), directory("d/s"), file("d/s/x", "1"), symlink("l", "d")}
	over := func(upper ...entry) []string { return several(t, lower, upper) }
	opaque, gone := file("d/.wh..wh..opq", ""), file("d/.wh.a", "")
	return map[string]sample{
		"before its name":          {layers: over(gone, file("d/a", "2")), want: []string{"d/", "d/a=2", "d/s/", "d/s/x=1", "l>d"}},
		"after its name":           {layers: over(file("d/a", "2"), gone), want: []string{"d/", "d/a=2", "d/s/", "d/s/x=1", "l>d"}},
		"between two of its name":  {layers: over(file("d/a", "2"), gone, file("d/a", "3")), want: []string{"d/", "d/a=3", "d/s/", "d/s/x=1", "l>d"}},
		"opaque, then names":       {layers: over(opaque, file("d/a", "2"), file("d/s/y", "2")), want: []string{"d/", "d/a=2", "d/s/", "d/s/y=2", "l>d"}},
		"names, then opaque":       {layers: over(file("d/a", "2"), file("d/s/y", "2"), opaque), want: []string{"d/", "d/a=2", "d/s/", "d/s/y=2", "l>d"}},
		"names, opaque, names":     {layers: over(file("d/s/y", "2"), opaque, file("d/a", "2")), want: []string{"d/", "d/a=2", "d/s/", "d/s/y=2", "l>d"}},
		"opaque, then its dir":     {layers: over(opaque, directory("d"), file("d/n", "2")), want: []string{"d/", "d/n=2", "l>d"}},
		"opaque and a whiteout":    {layers: over(gone, opaque, file("d/n", "2")), want: []string{"d/", "d/n=2", "l>d"}},
		"of a dir, then the dir":   {layers: over(file(".wh.d", ""), directory("d"), file("d/n", "2")), want: []string{"d/", "d/n=2", "l>d"}},
		"the dir, then of the dir": {layers: over(directory("d"), file("d/n", "2"), file(".wh.d", "")), want: []string{"d/", "d/n=2", "l>d"}},
		"through a symbolic link":  {layers: over(file("l/.wh.a", "")), want: []string{"d/", "d/s/", "d/s/x=1", "l>d"}},
		"of a symbolic link":       {layers: over(file(".wh.l", "")), want: []string{"d/", "d/a=1", "d/s/", "d/s/x=1"}},
		"of a link, then a dir":    {layers: over(file(".wh.l", ""), directory("l"), file("l/n", "2")), want: []string{"d/", "d/a=1", "d/s/", "d/s/x=1", "l/", "l/n=2"}},
		"of what is not":           {layers: over(file("d/.wh.q", "")), want: []string{"d/", "d/a=1", "d/s/", "d/s/x=1", "l>d"}},
		"in a dir that is not":     {layers: over(file("q/.wh.q", "")), want: []string{"d/", "d/a=1", "d/s/", "d/s/x=1", "l>d", "q/"}, umoci: "makes no directory for it"},
		"as a directory":           {layers: over(directory("d/.wh.a")), want: []string{"d/", "d/s/", "d/s/x=1", "l>d"}},
		"as a symbolic link":       {layers: over(symlink("d/.wh.a", "x")), want: []string{"d/", "d/s/", "d/s/x=1", "l>d"}},
		"as a hard link to itself": {layers: over(link("d/.wh.a", "d/.wh.a")), want: []string{"d/", "d/s/", "d/s/x=1", "l>d"}},
		"of nothing":               {layers: over(file("d/.wh.", "")), refused: `file "d/.wh.": the whiteout names no file`, umoci: "takes it for an opaque whiteout"},
		"of a directory itself":    {layers: over(file("d/.wh..", "")), refused: `file "d/.wh..": the whiteout names no file`},
		"of a directory above":     {layers: over(file("d/.wh...", "")), refused: `file "d/.wh...": the whiteout names no file`},
		"files of aufs":            {layers: over(file(".wh..wh.aufs", ""), directory(".wh..wh.plnk"), file(".wh..wh.plnk/1.2", "x"), file("d/n", "2")), want: []string{"d/", "d/a=1", "d/n=2", "d/s/", "d/s/x=1", "l>d"}, umoci: "makes them"},
		"of a device, as overlayfs": {layers: append(several(t, lower), one(raw{flag: '3', name: "d/a"}.String())...),
			want: []string{"d/", "d/s/", "d/s/x=1", "l>d"}, leftOut: map[string]int64{leftDevices: 1}, umoci: "makes it"},
		"a link to what goes":          {layers: over(link("d/b", "d/a"), gone), want: []string{"d/", "d/b=1", "d/s/", "d/s/x=1", "l>d"}},
		"a link to what went":          {layers: over(gone, link("d/b", "d/a")), refused: `hard link "d/b": hard link to "d/a": no such file or directory`},
		"a link over layers":           {layers: several(t, lower, []entry{link("b", "d/a")}, []entry{gone}, []entry{link("c", "b")}), want: []string{"b=1", "c&b", "d/", "d/s/", "d/s/x=1", "l>d"}},
		"a link, then opaque":          {layers: over(link("d/b", "d/a"), opaque), want: []string{"d/", "d/b=1", "l>d"}},
		"twice":                        {layers: several(t, lower, []entry{gone, gone}, []entry{gone}), want: []string{"d/", "d/s/", "d/s/x=1", "l>d"}},
		"the root, opaque":             {layers: over(file("n", "2"), file(".wh..wh..opq", "")), want: []string{"n=2"}},
		"the root, opaque, first":      {layers: over(file(".wh..wh..opq", ""), file("n", "2")), want: []string{"n=2"}},
		"in a tar file of no image":    {layers: several(t, []entry{file(".wh.a", "1"), file(".wh..wh..opq", "")}), policy: &Policy{Devices: DevicesDrop}, want: []string{".wh..wh..opq=", ".wh.a=1"}, umoci: "has layers only"},
		"a whiteout of a long name":    {layers: several(t, []entry{file(strings.Repeat("n", 251), "1")}, []entry{file(".wh."+strings.Repeat("n", 251), "")})},
		"a file, then a dir with more": {layers: several(t, []entry{file("x", "1")}, []entry{directory("x"), file("x/a", "2")}, []entry{file("x/.wh..wh..opq", ""), file("x/b", "3")}), want: []string{"x/", "x/b=3"}},
	}
}

// tarSamples has archives that GNU tar writes with options that give its own types.
func tarSamples(t testing.TB) map[string]sample {
	const files = "mkdir d; echo -n 1 >d/a; ln d/a d/b; chmod 755 d; chmod 644 d/a; touch -d@1000000000 d/a; chown -R 0:0 .; "
	want := []string{"d/", "d/a=1", "d/b&d/a"}
	return map[string]sample{
		"a label":                  {layers: []string{tarOf(t, files+"tar -cf archive --format=gnu --label=mine d")}, want: want, umoci: ignoresType},
		"a label of pax":           {layers: []string{tarOf(t, files+"tar -cf archive --format=posix --label=mine d")}, want: want, umoci: ignoresGlobal},
		"incremental":              {layers: []string{tarOf(t, files+"tar -cf archive --format=gnu -g ../snapshot d")}, want: want, umoci: ignoresType},
		"incremental, the root":    {layers: []string{tarOf(t, files+"rm -rf ../in2; mv d ..; tar -cf archive --format=gnu -C .. -g ../snapshot --exclude=in --exclude=snapshot .")}, umoci: ignoresType, want: want},
		"incremental of pax":       {layers: []string{tarOf(t, files+"tar -cf archive --format=posix -g ../snapshot d")}, want: want},
		"the second volume":        {layers: []string{tarOf(t, files+"head -c 30000 /dev/zero | tr '\\0' x >d/large; printf 'n archive\\n' | tar -cf ../first --format=gnu --tape-length=20 --multi-volume d")}, refused: `"d/large": is the rest of a file that begins in another volume`},
		"the second volume of pax": {layers: []string{tarOf(t, files+"head -c 30000 /dev/zero | tr '\\0' x >d/large; printf 'n archive\\n' | tar -cf ../first --format=posix --tape-length=20 --multi-volume d")}, refused: "is the rest of a file that begins in another volume"},
		"the first volume":         {layers: []string{tarOf(t, files+"head -c 30000 /dev/zero | tr '\\0' x >d/large; printf 'n ../second\\n' | tar -cf archive --format=gnu --tape-length=20 --multi-volume d")}, refused: `file "d/large": cannot write the file: unexpected EOF`},
		"version 7":                {layers: []string{tarOf(t, files+"tar -cf archive --format=v7 d")}, want: want},
		"global records":           {layers: []string{tarOf(t, files+"tar -cf archive --format=posix --pax-option=uid=5,mtime=7 d")}, want: []string{"d/ owner=5:0", "d/a=1 owner=5:0 time=7.000000000", "d/b&d/a"}, umoci: ignoresGlobal},
		"two archives":             {layers: []string{tarOf(t, files+"tar -cf 1 d; tar -cf 2 d; cat 1 2 >archive")}, refused: "more entries follow the end of the archive at byte 10240", umoci: "ignores it, as most programs do"},
		"two archives, joined":     {layers: []string{tarOf(t, files+"tar -cf archive d; tar -cf 2 d; tar -Af archive 2")}, want: want},
	}
}

// allSamples returns the samples of all kinds by their names.
func allSamples(t testing.TB) map[string]sample {
	all := map[string]sample{}
	for kind, samples := range map[string]map[string]sample{
		"type": typeSamples(), "shape": shapeSamples(t), "end": endSamples(), "attribute": attributeSamples(),
		"whiteout": whiteoutSamples(t), "GNU tar": tarSamples(t),
	} {
		for name, s := range samples {
			all[kind+"/"+name] = s
		}
	}
	return all
}

// unpackSample unpacks the layers of a sample, and returns the first error.
func (tree Tree) unpackSample(t *testing.T, s sample) (total Result, err error) {
	t.Helper()
	for _, layer := range s.layers {
		result, err := tree.UnpackLayer(t.Context(), strings.NewReader(layer), s.choosePolicy(), DefaultLimits, total)
		total.Add(result)
		if err != nil {
			return total, err
		}
	}
	return total, nil
}
