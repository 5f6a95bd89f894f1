(function_call_expression function: [(name) (qualified_name)] @call)
[(member_call_expression) (nullsafe_member_call_expression) (scoped_call_expression)] @call
(object_creation_expression [(name) (qualified_name)] @call)
(attribute [(name) (qualified_name)] @call)
[(base_clause (_) @base) (class_interface_clause (_) @base)]
(declaration_list (use_declaration (_) @base))
(named_type) @type
(class_constant_access_expression . [(name) (qualified_name)] @type)
(simple_parameter type: (_) @as name: (variable_name) @name)
(property_promotion_parameter type: (_) @as name: (variable_name (name) @field))
(property_declaration type: (_) @as (property_element name: (variable_name (name) @field)))
(assignment_expression left: (variable_name) @name right: [(object_creation_expression) (function_call_expression) (scoped_call_expression)] @from)
(assignment_expression left: (member_access_expression name: (name) @field) right: (object_creation_expression) @from)
[(function_definition return_type: (_) @returns) (method_declaration return_type: (_) @returns)]
[(namespace_definition) (namespace_use_declaration)] @import
[(require_expression) (require_once_expression) (include_expression) (include_once_expression)] @import
[(class_declaration) (interface_declaration) (trait_declaration) (enum_declaration)] @definition
[(function_definition) (method_declaration)] @definition
(attribute_list) @decorator
