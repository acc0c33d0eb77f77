package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// fetchWithin bounds one request for a token.
const fetchWithin = 10 * time.Second

// fetchTokens gives every buyer a purchase token of a product, from a shop whose
// challenge is none.
func fetchTokens(product string, asking []buyer) error {
	client := &http.Client{Timeout: fetchWithin}
	for i := range asking {
		var challenge struct {
			ID string `json:"challenge_id"`
		}
		if err := fetch(client, product+"/challenge", asking[i].authorization, struct{}{}, &challenge); err != nil {
			return err
		}
		var issued struct {
			Token string `json:"token"`
		}
		if err := fetch(client, product+"/token", asking[i].authorization, map[string]string{"challenge_id": challenge.ID}, &issued); err != nil {
			return err
		}
		body, err := json.Marshal(map[string]any{"quantity": 1, "token": issued.Token})
		if err != nil {
			return err
		}
		asking[i].body = body
	}
	return nil
}

func fetch(client *http.Client, url, authorization string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", authorization)
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, res.Status)
	}
	return json.NewDecoder(res.Body).Decode(into)
}
