package picture

import (
	"bytes"
	"image/png"
	"os"
	"sync"
	"testing"
)

func TestAPictureIsASmallPNGAndNoTwoAreAlike(t *testing.T) {
	pen := New()
	seen := map[string]bool{}
	for range 20 {
		file, err := pen.Draw("34ACX")
		if err != nil {
			t.Fatal(err)
		}
		picture, err := png.Decode(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		if size := picture.Bounds().Size(); size.X != width || size.Y != height {
			t.Errorf("size %v", size)
		}
		if len(file) > 48<<10 {
			t.Errorf("%d bytes", len(file))
		}
		if seen[string(file)] {
			t.Error("the same picture twice")
		}
		seen[string(file)] = true
	}
	// For a person who wants to look: go test -run APicture, with PICTURE=file.
	if name := os.Getenv("PICTURE"); name != "" {
		file, _ := pen.Draw("7HKWY")
		if err := os.WriteFile(name, file, 0o600); err != nil {
			t.Error(err)
		}
	}
}

func TestPicturesAreDrawnSideBySide(t *testing.T) {
	pen := New()
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
	pen := New()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := pen.Draw("34679"); err != nil {
			b.Fatal(err)
		}
	}
}
