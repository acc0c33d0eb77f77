package challenge

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math/rand/v2"
	"sync"

	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/vector"
)

// A picture shows symbols that people can read and simple programs cannot.

// A picture has twice the size at which a phone shows it, so that it is sharp.
const (
	width  = 320
	height = 96
)

// shades is the number of colours from paper to ink. 16 make smooth edges in four
// bits per pixel.
const shades = 16

// Paper is light and ink is dark, whatever the colours of the page. The darkest
// paper and the lightest ink have a contrast of 7:1, as people with low vision
// need (WCAG 2, success criterion 1.4.6).
const (
	paperFrom, paperTo = 236, 252
	inkFrom, inkTo     = 8, 76
)

// Pen draws pictures. It is safe for concurrent use if its randomness is.
type Pen struct {
	random io.Reader
	faces  []*sfnt.Font
	sheets sync.Pool
}

// NewPen makes a pen. The whole picture depends on random, which must be
// unpredictable: crypto/rand.Reader.
func NewPen(random io.Reader) (*Pen, error) {
	faces, err := parseFaces()
	if err != nil {
		return nil, err
	}
	return &Pen{random: random, faces: faces, sheets: sync.Pool{New: func() any { return newSheet() }}}, nil
}

// Draw makes a PNG file of symbols (digits and Latin letters).
func (p *Pen) Draw(symbols string) ([]byte, error) {
	var seed [32]byte
	if _, err := io.ReadFull(p.random, seed[:]); err != nil {
		return nil, fmt.Errorf("draw randomness: %w", err)
	}
	dice := rand.New(rand.NewChaCha8(seed))
	line, err := p.write(symbols, dice)
	if err != nil {
		return nil, fmt.Errorf("draw symbols: %w", err)
	}
	s := p.sheets.Get().(*sheet)
	defer p.sheets.Put(s)
	s.clear()
	s.ink(line)
	s.ink(scribble(dice))
	file, err := s.encode(palette(dice))
	if err != nil {
		return nil, fmt.Errorf("encode a picture: %w", err)
	}
	return file, nil
}

// sheet is the reusable drawing area. It is many times larger than the file.
type sheet struct {
	raster vector.Rasterizer
	cover  *image.Alpha
	buffer *png.EncoderBuffer
}

func newSheet() *sheet {
	return &sheet{cover: image.NewAlpha(image.Rect(0, 0, width, height))}
}

func (s *sheet) clear() { clear(s.cover.Pix) }

// ink fills contours. All contours of one call have the same winding, so
// overlaps stay filled.
func (s *sheet) ink(contours []contour) {
	s.raster.Reset(width, height)
	for _, c := range contours {
		s.raster.MoveTo(float32(c[0].x), float32(c[0].y))
		for _, p := range c[1:] {
			s.raster.LineTo(float32(p.x), float32(p.y))
		}
		s.raster.ClosePath()
	}
	s.raster.DrawOp = draw.Over
	s.raster.Draw(s.cover, s.cover.Rect, image.Opaque, image.Point{})
}

// encode writes the file and overwrites the sheet. It is most of the cost of a
// picture. Files a tenth smaller would take twice the time.
func (s *sheet) encode(colours color.Palette) ([]byte, error) {
	for i, cover := range s.cover.Pix {
		s.cover.Pix[i] = uint8((int(cover)*(shades-1) + 127) / 255)
	}
	indexed := image.Paletted{Pix: s.cover.Pix, Stride: s.cover.Stride, Rect: s.cover.Rect, Palette: colours}
	var file bytes.Buffer
	encoder := png.Encoder{BufferPool: s, CompressionLevel: png.BestSpeed}
	if err := encoder.Encode(&file, &indexed); err != nil {
		return nil, err
	}
	return file.Bytes(), nil
}

// Get and Put let the encoder reuse the sheet's buffer.
func (s *sheet) Get() *png.EncoderBuffer       { return s.buffer }
func (s *sheet) Put(buffer *png.EncoderBuffer) { s.buffer = buffer }

// palette makes the shades from a random paper colour to a random ink colour.
func palette(dice *rand.Rand) color.Palette {
	var paper, ink [3]int
	for i := range paper {
		paper[i] = paperFrom + dice.IntN(paperTo-paperFrom+1)
		ink[i] = inkFrom + dice.IntN(inkTo-inkFrom+1)
	}
	colours := make(color.Palette, shades)
	for shade := range colours {
		mix := func(i int) uint8 { return uint8(paper[i] + (ink[i]-paper[i])*shade/(shades-1)) }
		colours[shade] = color.RGBA{mix(0), mix(1), mix(2), 255}
	}
	return colours
}
