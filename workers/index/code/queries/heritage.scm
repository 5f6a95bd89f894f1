(class_heritage [(identifier) (member_expression)] @base)
