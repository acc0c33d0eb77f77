UPDATE meta SET floor = ?
