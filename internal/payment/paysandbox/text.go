package paysandbox

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"seckill"
)

// texts are the texts of the page in one language.
type texts struct {
	Tag                       string
	Title, Notice             string
	Order, Amount, Left       string
	Pay, Back                 string
	Altered, Expired          string
	minutesOne, minutesFormat string
	yuan                      string
}

func textsOf(lang seckill.Lang) texts {
	if lang == seckill.Chinese {
		return texts{
			Tag:   "zh",
			Title: "沙箱收银台", Notice: "测试支付，不会产生真实扣款",
			Order: "订单号", Amount: "应付金额", Left: "剩余支付时间",
			Pay: "立即支付", Back: "返回订单",
			Altered: "支付链接无效，请从订单页面重新发起支付",
			Expired: "支付链接已过期，请返回订单查看状态",

			minutesOne: "不足 1 分钟", minutesFormat: "%d 分钟", yuan: "¥",
		}
	}
	return texts{
		Tag:   "en",
		Title: "Sandbox checkout", Notice: "A test payment: no real money moves.",
		Order: "Order", Amount: "Amount due", Left: "Time left",
		Pay: "Pay now", Back: "Back to the order",
		Altered: "This payment link is not valid. Please start again from your order.",
		Expired: "This payment link has expired. Please look at your order.",

		minutesOne: "less than a minute", minutesFormat: "%d min", yuan: "CN¥",
	}
}

func (t texts) minutes(left time.Duration) string {
	if left < time.Minute {
		return t.minutesOne
	}
	return fmt.Sprintf(t.minutesFormat, int(left/time.Minute))
}

// amount formats cents like the shopper's page: ¥6,999.00, in English
// CN¥6,999.00, or USD 12.50.
func (t texts) amount(cents int64, currency string) string {
	digits := strconv.FormatInt(cents/100, 10)
	var b strings.Builder
	if currency == "CNY" {
		b.WriteString(t.yuan)
	} else {
		b.WriteString(currency + " ")
	}
	for i, digit := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	fmt.Fprintf(&b, ".%02d", cents%100)
	return b.String()
}
