package server

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// exitEnv makes the test binary run as the process that is killed.
const exitEnv = "SECKILL_TEST_SERVER_EXIT"

func TestProcess_ServersDieWithTheTestBinary(t *testing.T) {
	if os.Getenv(exitEnv) != "" {
		r, m := SharedRedis(t), SharedMariaDB(t)
		fmt.Println(r.PID(), r.Dir(), m.PID(), m.Dir())
		select {} // until it is killed
	}
	needMariaDB(t)
	need(t, "redis-server")
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), exitEnv+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids [2]int
	var dirs [2]string
	_, err = fmt.Fscan(bufio.NewReader(out), &pids[0], &dirs[0], &pids[1], &dirs[1])
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed on purpose
	if err != nil {
		t.Fatal(err)
	}
	for i := range pids {
		eventually(t, fmt.Sprintf("process %d is gone", pids[i]), func() bool {
			return errors.Is(syscall.Kill(pids[i], 0), syscall.ESRCH)
		})
		eventually(t, dirs[i]+" is gone", func() bool {
			_, err := os.Stat(dirs[i])
			return errors.Is(err, fs.ErrNotExist)
		})
	}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, promise string, holds func() bool) {
	t.Helper()
	poll(t, promise, func() error {
		if !holds() {
			return errors.New("it does not hold")
		}
		return nil
	})
}
