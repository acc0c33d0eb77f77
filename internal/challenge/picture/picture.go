// Package picture draws symbols so that people read them and simple programs do
// not.
package picture

import (
	"bytes"
	"fmt"

	"github.com/mojocn/base64Captcha"
)

// A picture is twice as large as it is shown on a phone, and sharp there.
const (
	width  = 320
	height = 96
	// noise is how many pale symbols lie beneath.
	noise = 6
)

// font is the one of the library's fonts whose letters and digits nobody takes
// for ornaments: WenQuanYi Micro Hei (Apache-2.0).
const font = "wqy-microhei.ttc"

// Pen draws pictures. It is safe for concurrent use.
type Pen struct {
	driver *base64Captcha.DriverString
}

// New makes a pen.
func New() *Pen {
	lines := base64Captcha.OptionShowHollowLine | base64Captcha.OptionShowSlimeLine | base64Captcha.OptionShowSineLine
	return &Pen{base64Captcha.NewDriverString(height, width, noise, lines, 0, "", nil, nil, []string{font})}
}

// Draw makes a PNG file of symbols.
func (p *Pen) Draw(symbols string) ([]byte, error) {
	item, err := p.driver.DrawCaptcha(symbols)
	if err != nil {
		return nil, fmt.Errorf("draw symbols: %w", err)
	}
	var file bytes.Buffer
	if _, err := item.WriteTo(&file); err != nil {
		return nil, fmt.Errorf("write a picture: %w", err)
	}
	return file.Bytes(), nil
}
