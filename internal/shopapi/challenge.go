package shopapi

import (
	"encoding/base64"

	"github.com/valyala/fasthttp"

	"seckill"
	"seckill/internal/api"
	"seckill/internal/challenge"
	"seckill/internal/sale"
)

const picturePrefix = "data:image/png;base64,"

// challenge issues a challenge.
func (s *Server) challenge(ctx *fasthttp.RequestCtx, on *sale.Sale) {
	buyer, ok := s.buyerOf(ctx, "challenge", on)
	if !ok {
		return
	}
	var kind string
	if err := readJSON(ctx, field{"type", &kind}); err != nil {
		s.refuse(ctx, "challenge", err)
		return
	}
	deadline, cancel := bounded()
	defer cancel()
	posed, err := s.opt.Challenges.Pose(deadline, challenge.Ask{
		Product: on.Terms(), Buyer: buyer, Addr: s.client(ctx), Kind: challenge.Kind(kind),
	}, s.opt.Clock.Now())
	s.result(ctx, "challenge", challengeBody(&posed), err)
}

// posedChallenge is a challenge in the API.
type posedChallenge struct {
	ID           string           `json:"challenge_id"`
	Type         challenge.Kind   `json:"type"`
	ExpiresAt    api.Time         `json:"expires_at"`
	Difficulty   int              `json:"difficulty,omitempty"`
	Image        string           `json:"image,omitempty"`
	Alternatives []challenge.Kind `json:"alternatives,omitempty"`
	WidgetURL    string           `json:"widget_url,omitempty"`
}

func challengeBody(c *challenge.Challenge) posedChallenge {
	body := posedChallenge{
		ID: c.ID, Type: c.Kind, ExpiresAt: api.Time(c.ExpiresAt), Difficulty: c.Difficulty,
		Alternatives: c.Alternatives, WidgetURL: c.WidgetURL,
	}
	if len(c.Picture) > 0 {
		body.Image = picturePrefix + base64.StdEncoding.EncodeToString(c.Picture)
	}
	return body
}

// token issues the purchase token for a solved challenge.
func (s *Server) token(ctx *fasthttp.RequestCtx, on *sale.Sale) {
	buyer, ok := s.buyerOf(ctx, "token", on)
	if !ok {
		return
	}
	var id, answer string
	if err := readJSON(ctx, field{"challenge_id", &id}, field{"answer", &answer}); err != nil {
		s.refuse(ctx, "token", err)
		return
	}
	if id == "" {
		s.refuse(ctx, "token", seckill.Errorf(seckill.CodeBadRequest, "challenge_id must be set"))
		return
	}
	deadline, cancel := bounded()
	defer cancel()
	token, expires, err := s.opt.Challenges.Redeem(deadline, challenge.Answer{
		Product: on.Terms(), Buyer: buyer, Addr: s.client(ctx), ChallengeID: id, Text: answer,
	}, s.opt.Clock.Now())
	s.result(ctx, "token", struct {
		Token     string   `json:"token"`
		ExpiresAt api.Time `json:"expires_at"`
	}{token, api.Time(expires)}, err)
}
