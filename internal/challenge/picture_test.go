package challenge

import (
	"bytes"
	"crypto/rand"
	"image"
	"image/color"
	"image/png"
	"math"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
)

// alphabet has more symbols than challenges use.
const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// largestFile is in bytes. In a page it is a third larger, in base64.
const largestFile = 6 << 10

func newPen(t testing.TB) *Pen {
	t.Helper()
	pen, err := NewPen(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return pen
}

// seeded is a pen with a reproducible sequence of pictures.
func seeded(t testing.TB, seed byte) *Pen {
	t.Helper()
	pen := newPen(t)
	pen.random = mathrand.NewChaCha8([32]byte{seed})
	return pen
}

func drawn(t testing.TB, pen *Pen, symbols string) []byte {
	t.Helper()
	file, err := pen.Draw(symbols)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestPicture_IsSmallUniquePNG(t *testing.T) {
	pen := newPen(t)
	seen := map[string]bool{}
	for range 100 {
		file := drawn(t, pen, "34ACX")
		picture, err := png.Decode(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		if size := picture.Bounds().Size(); size.X != width || size.Y != height {
			t.Errorf("size %v", size)
		}
		if len(file) > largestFile {
			t.Errorf("%d bytes", len(file))
		}
		if seen[string(file)] {
			t.Error("the same picture twice")
		}
		seen[string(file)] = true
	}
	// To look at the pictures: go test -run TestPicture, with PICTURES=directory.
	if folder := os.Getenv("PICTURES"); folder != "" {
		for i, symbols := range []string{"34679", "ACDEF", "HJKMN", "PRTWX", "Y7HKW", "MWMWW", "7JFT3", "9A6X4"} {
			if err := os.WriteFile(filepath.Join(folder, strconv.Itoa(i)+"-"+symbols+".png"), drawn(t, pen, symbols), 0o600); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestPicture_LargestIsSmall(t *testing.T) {
	pen := newPen(t)
	for range 100 {
		if file := drawn(t, pen, "WMWMW"); len(file) > largestFile {
			t.Errorf("%d bytes", len(file))
		}
	}
}

func TestPicture_DependsOnlyOnRandomness(t *testing.T) {
	first, again, other := seeded(t, 1), seeded(t, 1), seeded(t, 2)
	for range 3 { // the second uses what the first was drawn on
		file := drawn(t, first, "7HKWY")
		if !bytes.Equal(file, drawn(t, again, "7HKWY")) {
			t.Error("the same seed, another picture")
		}
		if bytes.Equal(file, drawn(t, other, "7HKWY")) {
			t.Error("another seed, the same picture")
		}
	}
}

func TestPicture_SymbolsDiffer(t *testing.T) {
	pen := newPen(t)
	seen := map[string]rune{}
	for _, symbol := range alphabet {
		pen.random = mathrand.NewChaCha8([32]byte{}) // all of them bent alike
		file := string(drawn(t, pen, strings.Repeat(string(symbol), 5)))
		if twin, found := seen[file]; found {
			t.Errorf("%q looks like %q", symbol, twin)
		}
		seen[file] = symbol
	}
}

func TestPicture_SymbolsStayInside(t *testing.T) {
	pen := newPen(t)
	dice := mathrand.New(mathrand.NewPCG(5, 7))
	texts := []string{"WWWWW", "MWMWM", "JJJJJ", "77777", "W", "J"}
	for range 500 {
		texts = append(texts, anyText(dice))
	}
	const nearly = 1e-9
	for _, text := range texts {
		line, err := pen.write(text, dice)
		if err != nil {
			t.Fatal(err)
		}
		box := boundsOf(line)
		if box.left < margin-nearly || box.top < margin-nearly || box.right > width-margin+nearly || box.bottom > height-margin+nearly {
			t.Errorf("%s reaches to %+v", text, box)
		}
		if box.bottom-box.top < height/2 {
			t.Errorf("%s is only %.0f pixels high", text, box.bottom-box.top)
		}
	}
}

func TestPicture_NoEmptyColumnBetweenSymbols(t *testing.T) {
	pen := newPen(t)
	dice := mathrand.New(mathrand.NewPCG(5, 7))
	for range 100 {
		text := anyText(dice)
		line, err := pen.write(text, dice)
		if err != nil {
			t.Fatal(err)
		}
		s := newSheet()
		s.ink(line)
		if runs := inkedRuns(s.cover); runs != 1 {
			t.Errorf("columns part %s into %d", text, runs)
		}
	}
}

// inkedRuns counts the runs of neighbouring columns with ink.
func inkedRuns(cover *image.Alpha) (runs int) {
	before := false
	for x := range width {
		inked := false
		for y := range height {
			inked = inked || cover.AlphaAt(x, y).A > 0
		}
		if inked && !before {
			runs++
		}
		before = inked
	}
	return runs
}

func anyText(dice *mathrand.Rand) string {
	var text [5]byte
	for i := range text {
		text[i] = alphabet[dice.IntN(len(alphabet))]
	}
	return string(text[:])
}

func TestPicture_ScribbleAddsOnly(t *testing.T) {
	pen := newPen(t)
	dice := mathrand.New(mathrand.NewPCG(1, 2))
	for range 50 {
		line, err := pen.write("34679", dice)
		if err != nil {
			t.Fatal(err)
		}
		s := newSheet()
		s.ink(line)
		before := bytes.Clone(s.cover.Pix)
		s.ink(scribble(dice))
		added := 0
		for i, cover := range s.cover.Pix {
			if cover < before[i] {
				t.Fatalf("pixel %d was %d and is %d", i, before[i], cover)
			}
			if cover > before[i] {
				added++
			}
		}
		if added == 0 || added > width*height/8 {
			t.Errorf("%d pixels scribbled", added)
		}
	}
}

func TestPicture_InkHasContrast(t *testing.T) {
	level := func(v int) color.Color { return color.RGBA{uint8(v), uint8(v), uint8(v), 255} }
	paper, ink := luminance(level(paperFrom)), luminance(level(inkTo))
	if contrast := (paper + 0.05) / (ink + 0.05); contrast < 7 {
		t.Errorf("the lightest ink on the darkest paper has a contrast of %.1f", contrast)
	}
}

// luminance is the relative luminance of WCAG 2.
func luminance(c color.Color) float64 {
	linear := func(v uint32) float64 {
		part := float64(v) / 0xffff
		if part <= 0.04045 {
			return part / 12.92
		}
		return math.Pow((part+0.055)/1.055, 2.4)
	}
	r, g, b, _ := c.RGBA()
	return 0.2126*linear(r) + 0.7152*linear(g) + 0.0722*linear(b)
}

func TestDraw_UnknownSymbolIsAnError(t *testing.T) {
	pen := newPen(t)
	for _, symbols := range []string{"", "34秒79", "3 4"} {
		if file, err := pen.Draw(symbols); err == nil {
			t.Errorf("%q is a picture of %d bytes", symbols, len(file))
		}
	}
	pen.random = iotest.ErrReader(os.ErrClosed)
	if _, err := pen.Draw("34679"); err == nil {
		t.Error("drawn without randomness")
	}
}

func TestDraw_ConcurrentUse(t *testing.T) {
	pen := newPen(t)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 5 {
				if _, err := pen.Draw("34679"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}

func BenchmarkDraw(b *testing.B) {
	pen := newPen(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := pen.Draw("34679"); err != nil {
			b.Fatal(err)
		}
	}
}
