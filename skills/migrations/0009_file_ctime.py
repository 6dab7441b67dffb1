"""Files have the time of their last status change, which a program cannot set, in their stamp."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("skills", "0008_pushed_by")]

    operations = [
        migrations.AddField("contextfile", "ctime_ns", models.BigIntegerField(default=0, db_default=0)),
    ]
