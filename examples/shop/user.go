package main

import (
	"context"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// passwordRounds is OWASP's figure for PBKDF2 with HMAC-SHA256.
	passwordRounds   = 600_000
	passwordKeyBytes = 32
	minPasswordBytes = 8
	maxPasswordBytes = 128
	maxNameBytes     = 64
	maxHashing       = 2 // passwords hashed at once: each takes a core for 0.2 s
	maxFormBytes     = 4 << 10

	sessionCookie = "shop_session"
	sessionLife   = 7 * 24 * time.Hour
)

// User is a customer.
type User struct{ ID, Name string }

// newSecret has 128 bits or more from the system's random source.
func newSecret() string { return rand.Text() }

// hashPassword returns "pbkdf2-sha256$ROUNDS$SALT$KEY".
func hashPassword(password string) (string, error) {
	salt := newSecret()
	key, err := pbkdf2.Key(sha256.New, password, []byte(salt), passwordRounds, passwordKeyBytes)
	if err != nil {
		return "", fmt.Errorf("hash password: %w", err)
	}
	return fmt.Sprintf("pbkdf2-sha256$%d$%s$%s", passwordRounds, salt, base64.RawStdEncoding.EncodeToString(key)), nil
}

func checkPassword(hash, password string) bool {
	parts := strings.Split(hash, "$")
	if len(parts) != 4 || parts[0] != "pbkdf2-sha256" {
		return false
	}
	rounds, err := strconv.Atoi(parts[1])
	if err != nil {
		return false
	}
	key, err := pbkdf2.Key(sha256.New, password, []byte(parts[2]), rounds, passwordKeyBytes)
	return err == nil && subtle.ConstantTimeCompare([]byte(base64.RawStdEncoding.EncodeToString(key)), []byte(parts[3])) == 1
}

// unknownUser costs as much to check as a real hash, so that the time of a
// sign-in does not tell which names exist.
const unknownUser = "pbkdf2-sha256$600000$none$none"

var (
	errBadForm   = errors.New("name or password is too short or too long")
	errNameTaken = errors.New("name is taken")
	errWrongPair = errors.New("name or password is wrong")
)

// signUp creates a user.
func (s *Shop) signUp(ctx context.Context, name, password string) (User, error) {
	hash, err := hashPassword(password)
	if err != nil {
		return User{}, err
	}
	user := User{ID: "u-" + newSecret(), Name: name}
	added, err := s.db.ExecContext(ctx, `INSERT INTO user (id, name, password, created) VALUES (?, ?, ?, ?) ON CONFLICT (name) DO NOTHING`,
		user.ID, name, hash, s.now().UnixMilli())
	if err != nil {
		return User{}, err
	}
	if rows, err := added.RowsAffected(); err != nil || rows == 0 {
		return User{}, errors.Join(errNameTaken, err)
	}
	return user, nil
}

// signIn finds a user by name and password.
func (s *Shop) signIn(ctx context.Context, name, password string) (User, error) {
	user, hash := User{Name: name}, unknownUser
	err := s.db.QueryRowContext(ctx, `SELECT id, password FROM user WHERE name = ?`, name).Scan(&user.ID, &hash)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return User{}, err
	}
	if !checkPassword(hash, password) {
		return User{}, errWrongPair
	}
	return user, nil
}

// enter serves both forms of the sign-in page; how is signUp or signIn.
func (s *Shop) enter(how func(ctx context.Context, name, password string) (User, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxFormBytes)
		name, password := strings.TrimSpace(r.PostFormValue("name")), r.PostFormValue("password")
		if name == "" || len(name) > maxNameBytes || len(password) < minPasswordBytes || len(password) > maxPasswordBytes {
			s.render(w, r, http.StatusBadRequest, "sign-in", User{}, errBadForm.Error())
			return
		}
		select {
		case s.hashing <- struct{}{}:
			defer func() { <-s.hashing }()
		case <-r.Context().Done():
			return
		}
		user, err := how(r.Context(), name, password)
		if errors.Is(err, errNameTaken) || errors.Is(err, errWrongPair) {
			s.render(w, r, http.StatusForbidden, "sign-in", User{}, err.Error())
			return
		}
		if err == nil {
			err = s.startSession(r.Context(), w, user)
		}
		if err != nil {
			s.fail(w, r, err)
			return
		}
		http.Redirect(w, r, "/", http.StatusSeeOther)
	}
}

func (s *Shop) startSession(ctx context.Context, w http.ResponseWriter, user User) error {
	token, expires := newSecret(), s.now().Add(sessionLife)
	hash := sha256.Sum256([]byte(token))
	_, err := s.db.ExecContext(ctx, `INSERT INTO session (token_hash, user_id, expires) VALUES (?, ?, ?)`, hash[:], user.ID, expires.UnixMilli())
	if err != nil {
		return fmt.Errorf("start session: %w", err)
	}
	// Behind HTTPS set Secure as well.
	http.SetCookie(w, &http.Cookie{Name: sessionCookie, Value: token, Path: "/", Expires: expires, HttpOnly: true, SameSite: http.SameSiteLaxMode})
	return nil
}

func (s *Shop) signOut(w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie(sessionCookie); err == nil {
		hash := sha256.Sum256([]byte(cookie.Value))
		if _, err := s.db.ExecContext(r.Context(), `DELETE FROM session WHERE token_hash = ?`, hash[:]); err != nil {
			s.fail(w, r, err)
			return
		}
	}
	http.SetCookie(w, &http.Cookie{Name: sessionCookie, Path: "/", MaxAge: -1})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// currentUser is the user of the session cookie, if there is one.
func (s *Shop) currentUser(r *http.Request) (user User, signedIn bool) {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return User{}, false
	}
	hash := sha256.Sum256([]byte(cookie.Value))
	err = s.db.QueryRowContext(r.Context(), `SELECT user.id, user.name FROM session JOIN user ON user.id = session.user_id
		WHERE token_hash = ? AND expires > ?`, hash[:], s.now().UnixMilli()).Scan(&user.ID, &user.Name)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		s.log.Error("session not read", "error", err)
	}
	return user, err == nil
}

// forUser asks visitors without a session to sign in.
func (s *Shop) forUser(next func(http.ResponseWriter, *http.Request, User)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		user, signedIn := s.currentUser(r)
		if !signedIn {
			http.Redirect(w, r, "/sign-in", http.StatusSeeOther)
			return
		}
		next(w, r, user)
	}
}
